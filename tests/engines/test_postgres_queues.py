"""What the queue on Postgres does when an answer is lost, and what its limits leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.contracts.tasks.queues import check_draft
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import Extent, TaskKey
from holdfast.values.content import ChatMessage
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.new_task import NewTask
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ROWS = (
    "SELECT (SELECT count(*) FROM holdfast.tasks WHERE tenant = $1), "
    "(SELECT count(*) FROM holdfast.task_contexts), (SELECT count(*) FROM holdfast.task_events)"
)

INDEXES = "SELECT indexname::text FROM pg_indexes WHERE schemaname = 'holdfast' AND $1 <> ''"


@asynccontextmanager
async def _engine() -> AsyncIterator[Postgres]:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=3)
        try:
            yield engine
        finally:
            await engine.aclose()


def _drafts() -> list[Draft]:
    hello = ChatMessage.user("hello")
    later = timedelta(hours=1)
    return [
        check_draft("writer", hello),
        check_draft("writer", hello, session_id="c1"),
        check_draft("writer", hello, submit_key="k1", priority=2),
        check_draft("writer", hello, run_after=later),
    ]


async def test_what_is_sent_again_after_a_lost_answer_is_stored_once() -> None:
    async with _engine() as engine:
        storage = PostgresLedger(engine)
        drafts = _drafts()
        first = await storage.submit_many(drafts)
        rows = await engine.fetch(ROWS, "default", safe=True)
        again = await storage.submit_many(drafts)
        one_by_one = [await storage.submit(draft) for draft in drafts]
        assert [one.task for one in first] == [one.task for one in again]
        assert [one.task for one in first] == [one.task for one in one_by_one]
        assert [one.task.id for one in first] == [draft.id for draft in drafts]
        assert await engine.fetch(ROWS, "default", safe=True) == rows
        assert tuple(rows[0]) == (4, 4, 8)


async def test_plain_tasks_that_are_sent_again_or_twice_at_once_are_stored_once() -> None:
    async with _engine() as engine:
        storage = PostgresLedger(engine)
        one, *several = [check_draft("writer", ChatMessage.user("x"), priority=1) for _ in range(4)]
        made = await asyncio.gather(*[storage.submit(one) for _ in range(3)])
        assert len({(found.task.id, found.task.created_at) for found in made}) == 1
        assert await storage.submit(one) == made[0]
        many = await asyncio.gather(*[storage.submit_many(several) for _ in range(3)])
        assert many[0] == many[1] == many[2]
        assert [found.task.id for found in many[0]] == [draft.id for draft in several]
        assert tuple((await engine.fetch(ROWS, "default", safe=True))[0]) == (4, 4, 8)
        # What is returned without a look is what is stored.
        for found in (made[0], *many[0]):
            assert await storage.get(TaskKey(found.task.id, None), Extent(0)) == found


async def test_looking_up_a_task_reads_it_alone_in_a_database_without_statistics() -> None:
    async with _engine() as engine:
        ledger = Ledger(PostgresLedger(engine))
        for _ in range(3):
            await ledger.submit_many([NewTask("writer", ChatMessage.user("x"))] * 500)
        names = await engine.fetch(INDEXES, "default", safe=True)
        plans = []
        for sql in (
            "SELECT * FROM holdfast.tasks WHERE tenant = $1 AND id = 't1'",
            "SELECT * FROM holdfast.tasks WHERE tenant = $1 AND id = 't1' AND owner = 'ana'",
            "SELECT * FROM holdfast.task_contexts WHERE tenant = $1 AND owner = 'a' AND id = 'c'",
        ):
            rows = await engine.fetch(f"EXPLAIN {sql}", "default", safe=True)
            plans.append("\n".join(row[0] for row in rows))
        assert {row[0] for row in names} >= {"tasks_listed", "task_contexts_listed"}
        assert not [plan for plan in plans if "_listed" in plan or "_pkey" not in plan]


async def test_starts_that_count_no_more_are_removed_and_none_is_kept_without_a_rate() -> None:
    async with _engine() as engine:
        ledger = Ledger(PostgresLedger(engine))
        count = "SELECT count(*) FROM holdfast.task_starts WHERE tenant = $1"
        for _ in range(4):
            await ledger.submit("writer", ChatMessage.user("hello"), key="a")
        assert len(await ledger.claim("w1", limits=[Limit("writer", concurrency=9)])) == 1
        assert len(await ledger.claim("w1")) == 1
        assert await engine.fetchval(count, "default", safe=True) == 0
        rates = [Limit("writer", rate="5/min"), Limit("writer", rate="5/h", per_key=True)]
        assert len(await ledger.claim("w1", limits=rates)) == 1
        assert await engine.fetchval(count, "default", safe=True) == 2
        await engine.fetch(
            "UPDATE holdfast.task_starts SET at = at - interval '2 min', "
            "until = until - interval '2 min' WHERE tenant = $1",
            "default",
            safe=True,
        )
        assert len(await ledger.claim("w1", limits=rates)) == 1
        assert await engine.fetchval(count, "default", safe=True) == 3
