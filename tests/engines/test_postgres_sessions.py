"""Deleted sessions on Postgres: the row that stays behind, and how it goes."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engines.postgres.maintenance import Maintenance
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from tests.engines.postgres import PostgresHarness
from tests.engines.postgres_database import as_keeper

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")


async def _rows(harness: PostgresHarness) -> list[Any]:
    async with as_keeper(harness.engine) as connection:
        rows: list[Any] = await connection.fetch(
            "SELECT id, agent, metadata FROM holdfast.sessions WHERE starts_with(tenant, $1)",
            harness._prefix,
        )
    return [tuple(row) for row in rows]


async def test_a_deleted_session_is_an_empty_row_until_it_is_purged() -> None:
    harness = PostgresHarness()
    await harness.open()
    try:
        store = harness.store("episodes")
        await store.start_session(ANA, "s1", metadata={"secret": 1})
        await store.append([Event(ANA, "s1", "note", {"secret": 2}), Event(ANA, "s2", "note", {})])
        assert await store.delete_session("s1")
        assert sorted(await _rows(harness)) == [("s1", "", "{}"), ("s2", str(ANA), "{}")]
        async with as_keeper(harness.engine) as connection:
            purge = Maintenance(connection).jobs()["deleted sessions"]
            await purge()
        assert len(await _rows(harness)) == 2
        await harness.elapse(8 * 86_400)
        async with as_keeper(harness.engine) as connection:
            assert await Maintenance(connection).jobs()["deleted sessions"]() >= 1
        assert await _rows(harness) == [("s2", str(ANA), "{}")]
    finally:
        await harness.close()
