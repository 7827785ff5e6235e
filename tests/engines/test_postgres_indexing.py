"""The index of words is filled in batches that are bounded, however events came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.indexer import PostgresIndexer
from holdfast.engines.postgres.indexing import BATCH, index_batch
from holdfast.engines.postgres.maintenance import Maintenance
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from tests.engines.postgres_database import as_keeper, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")


async def test_a_batch_is_bounded_by_events_and_not_by_how_they_were_appended() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, max_connections=2, auto_migrate=True)
        store = EpisodicMemory(PostgresEpisodes(engine))
        events = [Event(ANA, "s1", "note", {"note": f"tide {at}"}) for at in range(1700)]
        await store.append(events)
        for session in range(5):
            few = [Event(ANA, f"few{session}", "note", {"note": "moon"}) for _ in range(300)]
            await store.append(few)
        await store.append([Event(ANA, "one", "note", {"note": "harbour"})])

        async def fetch(sql: Any, *args: Any) -> Sequence[Any]:
            return await engine.fetch(sql, *args, safe=True)

        batches = []
        while done := await index_batch(fetch, "default", str(ANA)):
            batches.append(done)
        assert sum(batches) == 3201
        assert max(batches) < 2 * BATCH
        assert len(await store.recall(ANA, "moon", limit=2000)) == 1500
        assert len(await store.recall(ANA, "harbour")) == 1
        await engine.aclose()


async def test_an_event_that_cannot_be_read_stops_the_index_of_its_agent_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, max_connections=2, auto_migrate=True)
        for tenant in ("a", "b"):
            store = EpisodicMemory(PostgresEpisodes(engine, tenant=tenant))
            await store.append([Event(ANA, "s1", "note", {"note": "tide"})])
        async with as_keeper(engine) as connection:
            await connection.execute(
                "UPDATE holdfast.events SET occurred_at = '-infinity' WHERE tenant = 'a'"
            )
        assert await PostgresIndexer(engine).drain() == 1
        assert "cannot be indexed" in caplog.text
        async with as_keeper(engine) as connection:
            jobs = Maintenance(connection).jobs()
            assert await jobs["events indexed for recall"]() == 0
        assert (
            len(await EpisodicMemory(PostgresEpisodes(engine, tenant="b")).recall(ANA, "tide")) == 1
        )
        await engine.aclose()
