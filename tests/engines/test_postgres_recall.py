"""Recall on Postgres: what waits, who may index, what was removed meanwhile, and large agents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.engines.postgres import indexing
from holdfast.engines.postgres.embedding_queue import PostgresEmbeddingQueue
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.indexes import index_event_vectors
from holdfast.spi.embedding import Embedder
from holdfast.testing.embedders import ContextEmbedder
from holdfast.testing.postgres_server import PASSWORD
from holdfast.values.content import ChatMessage
from holdfast.values.events import Event, Recalled
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_ref
from tests.engines.postgres import server
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@dataclass
class Log:
    """A log in a database of its own."""

    url: str
    engine: Postgres

    def store(self, embedder: Embedder | None = None) -> EpisodicMemory:
        return EpisodicMemory(PostgresEpisodes(self.engine, embedder=embedder))

    async def fetch(self, sql: Any, *args: Any) -> Sequence[Any]:
        return await self.engine.fetch(sql, *args, safe=True)

    async def waiting(self) -> int:
        found: int = await self.engine.fetchval(
            "SELECT count(*) FROM holdfast.unindexed_events WHERE tenant = $1", "default", safe=True
        )
        return found


@pytest_asyncio.fixture(loop_scope="session")
async def log() -> AsyncIterator[Log]:
    async with empty_database() as url:
        engine = await Postgres.open(url, max_connections=3)
        yield Log(url, engine)
        await engine.aclose()


def _said(name: str, text: str, session: str = "s1", run: str = "") -> Event:
    message = ChatMessage.user(text, name=name)
    found = Event.of_message(ANA, session, message, run_id=run)
    return Event(ANA, session, found.type, found.payload, id=found.id, run_id=run, occurred_at=NOON)


def _texts(found: Sequence[Recalled]) -> list[str]:
    return sorted(str(one.event.to_message().text) for one in found)


@pytest.mark.parametrize("embedder", [None, HashEmbedder(8), ContextEmbedder(8)])
async def test_a_search_is_one_round_trip_and_three_right_after_a_write(
    embedder: Embedder | None, tmp_path: Path
) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    async with empty_database() as url, trips.between(listen, behind.folder / listen.name):
        engine = await Postgres.open(url.replace(str(behind.folder), str(tmp_path)))
        store = EpisodicMemory(PostgresEpisodes(engine, embedder=embedder))
        for at in range(4):  # statements are prepared, and the model is adopted
            await store.append([_said("Ana", f"low tide {at}")])
            await store.recall(ANA, "tide")
        for at in range(3):
            before = trips.count
            assert len(await store.recall(ANA, "tide", limit=20)) == at + 4
            assert trips.count - before == 1
            await store.append([_said("Ben", f"high tide {at}")])
            before = trips.count
            found = await store.recall(ANA, "tide", limit=20)
            assert (len(found), {one.degraded for one in found}) == (at + 5, {""})
            assert trips.count - before == 3
            if embedder is not None:
                assert all("semantic" in one.scores for one in found)
        await engine.aclose()


async def test_a_body_that_is_too_large_for_a_candidate_is_read_for_a_hit(log: Log) -> None:
    store = log.store()
    large = "tide " * 5000
    await store.append([Event(ANA, "s1", "note", {"text": large}), _said("Ana", "low tide")])
    found = await store.recall(ANA, "tide")
    assert max(len(str(one.event.payload)) for one in found) > len(large)


async def test_a_role_that_may_only_read_recalls_what_is_indexed_and_says_what_is_not(
    log: Log,
) -> None:
    store, embedder = log.store(), HashEmbedder(8)
    await store.append([_said("Ana", "low tide")])
    assert len(await log.store(embedder).recall(ANA, "tide")) == 1
    await store.append([_said("Ben", "high tide")])
    name = f"r_{new_ref().replace('-', '_').lower()}"
    async with connected(log.url) as admin:
        database = await admin.fetchval("SELECT current_database()")
        await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        await admin.execute(f"GRANT USAGE ON SCHEMA holdfast TO {name}")
        await admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA holdfast TO {name}")
    reader = await Postgres.open(server(18).url(user=name, database=database), max_connections=1)
    for model in (None, embedder):
        found = await EpisodicMemory(PostgresEpisodes(reader, embedder=model)).recall(ANA, "tide")
        assert _texts(found) == ["low tide"]
        assert "1 events are not indexed yet: run `holdfast index`" in found[0].degraded
    await reader.aclose()
    assert _texts(await store.recall(ANA, "tide")) == ["high tide", "low tide"]
    [first, _] = await store.recall(ANA, "tide")
    assert first.degraded == ""


async def test_what_is_removed_while_it_is_being_indexed_is_not_indexed(log: Log) -> None:
    store = log.store()
    await store.append([_said("Ana", "Which harbour?", run="r1"), _said("Ben", "The north one.")])
    [batch] = await indexing.read_batches(log.fetch, "default", [str(ANA)])
    await store.clear("s1", run_id="r1")
    assert not await indexing.write_batch(log.fetch, "default", batch, merge_after=64)
    assert await log.waiting() == 1
    assert await store.recall(ANA, "harbour") == []
    assert _texts(await store.recall(ANA, "north")) == ["The north one."]


async def test_two_who_index_the_same_events_index_them_once(log: Log) -> None:
    store = log.store()
    await store.append([_said("Ana", "tide"), _said("Ben", "moon")])
    batches = [(await indexing.read_batches(log.fetch, "default", [str(ANA)]))[0] for _ in range(2)]
    done = [
        await indexing.write_batch(log.fetch, "default", batch, merge_after=64) for batch in batches
    ]
    assert done == [True, False]
    assert await indexing.index_batch(log.fetch, "default", str(ANA)) == 0
    [found] = await store.recall(ANA, "moon")
    assert found.event.payload["name"] == "Ben"


async def test_an_answer_finds_its_question_behind_any_number_of_tool_messages(log: Log) -> None:
    store = log.store()
    await store.append([_said("Ana", "Which harbour?")])
    await store.recall(ANA, "indexed?")
    tools = [ChatMessage.tool(f"t{at}", f"result {at}") for at in range(40)]
    await store.append([Event.of_message(ANA, "s1", one) for one in tools])
    await store.append([_said("Ben", "The north one.")])
    found = await store.recall(ANA, "harbour")
    assert _texts(found) == ["The north one.", "Which harbour?"]


async def test_a_vector_that_was_made_with_a_removed_context_is_not_kept(log: Log) -> None:
    embedder = ContextEmbedder(8)
    store, queue = log.store(embedder), PostgresEmbeddingQueue(log.engine)
    await queue.adopt(embedder.name, 8, reads_context=True)
    await store.append([_said("Ana", "Which harbour?", run="r1"), _said("Ben", "The north one.")])
    await queue.catch_up()
    batch = await queue.take(10)
    assert batch is not None
    assert ("Ana: Which harbour?", "Ben: The north one.") in batch.turns
    vectors = [*await embedder.embed_turns(batch.turns)]
    await store.clear("s1", run_id="r1")
    assert await queue.keep(batch, vectors, model=embedder.name, dimension=8)
    assert (await queue.status()).embedded == 0
    embedder.embedded.clear()
    assert len(await store.recall(ANA, "north")) == 1
    assert embedder.embedded == [("", "Ben: The north one.")]
    assert (await queue.status()).embedded == 1


async def test_an_agent_with_many_vectors_is_searched_through_an_index_of_its_own(
    log: Log,
) -> None:
    embedder = HashEmbedder(16)
    store = log.store(embedder)
    other = AgentId("writer", "ben")
    for agent, count in ((ANA, 400), (other, 20)):
        events = [
            Event(
                *(agent, f"s{at % 4}", "note" if at % 40 else "decision"),
                {"text": f"tide n{at % 50} m{at}"},
                id=f"{agent.key}-{at}",
                occurred_at=NOON + timedelta(minutes=at),
            )
            for at in range(count)
        ]
        texts = [str(one.payload["text"]) for one in events]
        await store.append(events, embeddings=await embedder.embed(texts))

    async def ask() -> list[set[str]]:
        hows: list[dict[str, Any]] = [{}, {"types": ["decision"]}, {"session_id": "s1"}]
        [vector] = await embedder.embed(["tide n7"])
        found = [
            await store.recall(agent, query, limit=10, **how)
            for query in ("tide n7", vector)
            for agent in (ANA, other)
            for how in hows
        ]
        return [{one.event.id for one in hits} for hits in found]

    exact = await ask()
    async with connected(log.url) as connection:
        done = [step async for step in index_event_vectors(connection, threshold=100)]
        assert done == [f"index the vectors of {ANA}"]
        assert [step async for step in index_event_vectors(connection, threshold=100)] == []
        marked = await connection.fetch(
            "SELECT agent FROM holdfast.event_agents WHERE near_dimension = 16"
        )
        assert [row[0] for row in marked] == [str(ANA)]
        through = await ask()
        counts = [10, 10, 10, 10, 1, 5]
        assert [len(hits) for hits in through] == [len(hits) for hits in exact] == counts * 2
        same = sum(len(one & other) for one, other in zip(exact, through, strict=True))
        assert same >= 0.9 * sum(map(len, exact))
        for session in range(4):
            await store.clear(f"s{session}", agent_id=ANA)
        [dropped] = [step async for step in index_event_vectors(connection, threshold=100)]
        assert dropped.startswith("drop the unused index event_vectors_near_")
    for query in ("tide n7", [1.0] * 16):
        assert await store.recall(ANA, query) == []
