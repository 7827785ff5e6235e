"""The feed of changes on Postgres beside transactions that stay open, and what it reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.values.content import ChatMessage
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_change_of_a_transaction_that_commits_late_is_not_missed() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=3)
        ledger = Ledger(PostgresLedger(engine))
        late = await ledger.submit("writer", ChatMessage.user("late"))
        begin = await ledger.changes("now")
        async with connected(url) as connection:
            transaction = connection.transaction()
            await transaction.start()
            # The change has its number now, and is seen later.
            await connection.execute(
                "SELECT holdfast.pause_task('default', $1, NULL, '\"\"')", late.id
            )
            early = await ledger.submit("writer", ChatMessage.user("early"))
            held = await ledger.changes(begin.cursor)
            assert held.changes == []
            await transaction.commit()
        found = await ledger.changes(held.cursor)
        assert [(one.task_id, str(one.to_state)) for one in found.changes] == [
            (late.id, "paused"),
            (early.id, "submitted"),
        ]
        assert (await ledger.changes(found.cursor)).changes == []
        await engine.aclose()


async def test_a_page_reads_by_the_index_and_no_more_than_its_limit() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=3)
        ledger = Ledger(PostgresLedger(engine))
        for number in range(300):
            await ledger.submit("writer", ChatMessage.user(str(number)), owner=f"o{number % 10}")
        sql = load("ledger_changes")["changes"]
        async with connected(url) as connection:
            await connection.execute("ANALYZE holdfast.tasks, holdfast.task_events")
            for owner in (None, "o3", "nobody"):
                rows = await connection.fetch(
                    f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", "default", owner, "0", "", 0, 20
                )
                plan = json.loads(rows[0][0])[0]["Plan"]
                nodes = list(_nodes(plan))
                assert {one["Node Type"] for one in nodes} & {
                    "Seq Scan",
                    "Bitmap Heap Scan",
                } == set()
                read = [one for one in nodes if one.get("Index Name") == "task_changes"]
                assert [one["Actual Rows"] for one in read] == [20]
        await engine.aclose()


def _nodes(plan: dict[str, Any]) -> Any:
    yield plan
    for one in plan.get("Plans", ()):
        yield from _nodes(one)
