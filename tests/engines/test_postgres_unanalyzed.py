"""Calls that run before a table has statistics read as little of a large tenant as of a small one.

Without statistics a planner takes any condition on the tenant for as good as a look-up by key. What
counts is how many pages are read: entries of an index that are skipped are counted nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from holdfast.contracts.history import History
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tasks.ledger import PostgresLedger
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.values.content import ChatMessage
from holdfast.values.ids import new_id
from holdfast.values.tasks.new_task import NewTask
from tests.engines.postgres_database import as_keeper, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = "writer"
FEW, MANY = 800, 3200
PAGES = (
    "SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)) "
    "FROM pg_statio_user_tables WHERE schemaname = 'holdfast'"
)


@asynccontextmanager
async def _unanalyzed() -> AsyncIterator[Postgres]:
    """An engine with one connection, on a database that is never analyzed."""
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        async with as_keeper(engine) as keeper:
            tables = await keeper.fetch(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
                "WHERE schemaname = 'holdfast'"
            )
            for (table,) in tables:
                await keeper.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        yield engine
        await engine.aclose()


async def _pages(engine: Postgres, call: Callable[[], Awaitable[Any]]) -> int:
    """How many pages of our tables and indexes a call reads, once its plans are made."""

    async def counted() -> int:
        async with engine.connection(writes=True) as connection:
            await connection.bare.execute("SELECT pg_stat_force_next_flush()")
            return int(await connection.bare.fetchval(PAGES))

    for _ in range(6):
        await call()
    before = await counted()
    await call()
    return await counted() - before


async def test_an_append_finds_its_session_without_reading_the_others() -> None:
    async with _unanalyzed() as engine:
        history = History(PostgresTranscripts(engine))
        said = ChatMessage.user("tide")

        def fresh(count: int) -> list[Any]:
            return [
                entry
                for _ in range(count)
                for entry in history.checked(AGENT, [said], session_id=new_id(), run_id="r1")
            ]

        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "a known session": partial(history.append, AGENT, said, session_id="s1"),
            "a new session": lambda: history.append(AGENT, said, session_id=new_id()),
            "new sessions": lambda: history.append_checked(fresh(3)),
            "the newest": partial(history.get_messages, AGENT, session_id="s1", recent_limit=5),
        }
        read: dict[int, dict[str, int]] = {}
        for size in (FEW, MANY):
            for _ in range(size // 100):
                await history.append_checked(fresh(100))
            read[size] = {name: await _pages(engine, call) for name, call in calls.items()}
    # Both have indexes of two levels; one that is read from its start has four times the pages.
    for name, few in read[FEW].items():
        assert read[MANY][name] <= few * 1.3 + 8, read


async def test_the_messages_of_resting_tasks_are_read_without_those_of_the_others() -> None:
    async with _unanalyzed() as engine:
        ledger = Ledger(PostgresLedger(engine))

        async def rest(count: int) -> None:
            made = await ledger.submit_many(
                [NewTask(AGENT, ChatMessage.user("tide")) for _ in range(count)]
            )
            for one in made:
                await ledger.cancel(one.id)

        read = partial(ledger.resting_messages, agents=[AGENT], limit=5)
        await rest(20)
        among_few = await _pages(engine, read)
        await rest(600)
        among_many = await _pages(engine, read)
    assert among_many <= among_few + 20, (among_few, among_many)
