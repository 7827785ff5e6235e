"""Embedding follows the log on Postgres: in batches, resumably, and nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.engines.postgres.embedding_queue import PostgresEmbeddingQueue, tenants_waiting
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.recall import TAIL
from holdfast.memory.embedding_worker import BATCH, EmbeddingWorker, follow
from holdfast.spi.embedding import Embedder, EmbeddingMode
from holdfast.testing.embedders import FlakyEmbedder
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import as_keeper, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def engine() -> AsyncIterator[Postgres]:
    """A database of this module's own."""
    async with empty_database() as url:
        found = await Postgres.open(url, max_connections=4, auto_migrate=True)
        yield found
        await found.aclose()


class Log:
    """One tenant's log, with a queue."""

    def __init__(self, engine: Postgres) -> None:
        self.engine = engine
        self.tenant = new_ref()
        self.queue = PostgresEmbeddingQueue(engine, tenant=self.tenant)

    def episodes(self, embedder: Embedder | None = None) -> EpisodicMemory:
        return EpisodicMemory(PostgresEpisodes(self.engine, tenant=self.tenant, embedder=embedder))

    def worker(self, embedder: Embedder) -> EmbeddingWorker:
        return EmbeddingWorker(self.queue, embedder)

    async def write(self, *notes: str, session: str = "s1", agent: AgentId = ANA) -> None:
        events = [Event(agent, session, "note", {"note": note}) for note in notes]
        await self.episodes().append(events)

    async def found_by(self, query: str, embedder: Embedder) -> dict[str, tuple[str, ...]]:
        hits = await self.episodes(embedder).recall(ANA, query, limit=100)
        return {hit.event.payload["note"]: hit.found_by for hit in hits}


@pytest.fixture
def log(engine: Postgres) -> Log:
    """A tenant of its own."""
    return Log(engine)


async def test_a_worker_embeds_everything_in_batches_and_records_the_model(log: Log) -> None:
    many = 2 * BATCH + 50
    await log.write(*(f"tide {at}" for at in range(many)))
    await log.write("another session", session="s2")
    embedder = FlakyEmbedder(8)
    assert await log.worker(embedder).adopt()
    seen: list[int] = []
    assert await log.worker(embedder).drain(seen.append) == (many + 1, "")
    assert max(seen) <= 2 * BATCH
    assert len(embedder.embedded) == len(set(embedder.embedded)) == many + 1
    found = await log.queue.status()
    assert (found.model, found.dimension, found.embedded) == ("hash-8", 8, many + 1)
    assert (found.waiting, found.outdated, found.refused) == (0, 0, 0)
    assert await log.worker(embedder).drain() == (0, "")


async def test_without_an_embedder_nothing_is_queued_and_a_first_one_finds_the_backlog(
    log: Log,
) -> None:
    await log.write("tide 1")
    await log.episodes().recall(ANA, "tide")
    assert (await log.queue.status()).waiting == 0
    await log.write("tide 2")
    assert await log.queue.adopt("hash-8", 8)
    assert not await log.queue.adopt("hash-8", 8)
    assert (await log.worker(HashEmbedder(8)).drain())[0] == 2


async def test_recall_embeds_a_short_tail_itself_and_leaves_a_long_one_to_the_worker(
    log: Log,
) -> None:
    embedder = FlakyEmbedder(8)
    await log.write("tide")
    assert await log.found_by("tide", embedder) == {"tide": ("lexical", "semantic")}
    await log.write(*(f"moon {at}" for at in range(TAIL + 1)))
    hits = await log.episodes(embedder).recall(ANA, "moon", limit=100)
    assert len(hits) == TAIL + 2
    assert "the embedding worker is behind" in hits[0].degraded
    by_words = [hit for hit in hits if hit.event.payload["note"].startswith("moon")]
    assert {hit.found_by for hit in by_words} == {("lexical",)}
    assert len(embedder.embedded) == 1
    await log.worker(embedder).drain()
    hits = await log.episodes(embedder).recall(ANA, "moon", limit=100)
    assert {hit.degraded for hit in hits} == {""}
    assert len(embedder.embedded) == len(set(embedder.embedded)) == TAIL + 2


async def test_a_change_of_model_is_noticed_and_embedded_again_online(log: Log) -> None:
    old, new = HashEmbedder(8), HashEmbedder(16)
    await log.write("tide", "moon")
    await log.worker(old).adopt()
    await log.worker(old).drain()
    hits = await log.episodes(new).recall(ANA, "tide")
    assert [hit.found_by for hit in hits] == [("lexical",)]
    assert "hash-8, not by hash-16: run `holdfast embed run`" in hits[0].degraded
    assert await log.worker(new).adopt()
    found = await log.queue.status()
    assert (found.model, found.embedded, found.outdated, found.waiting) == ("hash-16", 0, 2, 2)
    # Words go on while it is being done, and old vectors of another length are left out.
    assert "tide" in await log.found_by("tide", old)
    assert await log.worker(new).drain() == (2, "")
    found = await log.queue.status()
    assert (found.embedded, found.outdated) == (2, 0)
    assert (await log.found_by("tide", new))["tide"] == ("lexical", "semantic")


async def test_vectors_of_another_model_of_the_same_length_take_no_part(log: Log) -> None:
    class Other(HashEmbedder):
        name = "other"

    await log.write("tide")
    await log.worker(HashEmbedder(8)).adopt()
    await log.worker(HashEmbedder(8)).drain()
    await log.worker(Other(8)).adopt()
    [[vector]] = [await HashEmbedder(8).embed(["tide"])]
    assert await log.episodes().recall(ANA, vector) == []
    await log.worker(Other(8)).drain()
    assert len(await log.episodes().recall(ANA, vector)) == 1


async def test_vectors_that_a_writer_gave_are_kept_and_bind_the_dimension(log: Log) -> None:
    given = Event(ANA, "s1", "note", {"note": "given"})
    await log.episodes().append([given], embeddings=[[1.0, 0.0]])
    with pytest.raises(InvalidInputError, match=r"8.*2"):
        await log.worker(HashEmbedder(8)).adopt()
    [hit] = await log.episodes(HashEmbedder(8)).recall(ANA, "given")
    assert hit.found_by == ("lexical",)
    assert "has dimension 8, but the log's is 2" in hit.degraded
    embedder = FlakyEmbedder(2)
    await log.worker(embedder).adopt()
    await log.worker(embedder).drain()
    assert embedder.embedded == []
    assert (await log.queue.status()).given == 1
    [nearest] = await log.episodes().recall(ANA, [1.0, 0.0])
    assert nearest.score == pytest.approx(1)


async def test_an_embedder_that_is_down_leaves_everything_waiting(log: Log) -> None:
    await log.write("tide", "moon")
    embedder = FlakyEmbedder(8, down=True)
    await log.worker(embedder).adopt()
    done, problem = await log.worker(embedder).drain()
    assert (done, "the model is down" in problem) == (0, True)
    found = await log.queue.status()
    assert (found.waiting, found.refused) == (2, 0)
    embedder.down = False
    assert await log.worker(embedder).drain() == (2, "")


async def test_a_text_that_the_model_refuses_keeps_back_itself_alone(log: Log) -> None:
    await log.write("tide", "poison", "moon")
    await log.write("poison alone", session="s2")
    embedder = FlakyEmbedder(8, poison="poison")
    await log.worker(embedder).adopt()
    assert await log.worker(embedder).drain() == (4, "")
    found = await log.queue.status()
    assert (found.embedded, found.refused, found.waiting) == (2, 2, 0)
    embedder.poison = ""
    assert await log.queue.retry_refused() == 2
    assert await log.worker(embedder).drain() == (2, "")
    assert (await log.queue.status()).refused == 0


async def test_what_a_dead_worker_took_is_embedded_by_another(log: Log) -> None:
    await log.write(*(f"tide {at}" for at in range(10)))
    embedder = HashEmbedder(8)
    await log.worker(embedder).adopt()
    assert await log.queue.take(100) is not None
    assert await log.queue.take(100) is None
    await _free(log)
    assert await log.worker(embedder).drain() == (10, "")


async def test_several_workers_share_the_queue(log: Log) -> None:
    for session in range(40):
        await log.write(*(f"tide {session} {at}" for at in range(20)), session=f"s{session}")
    embedder = FlakyEmbedder(8)
    await log.worker(embedder).adopt()
    done = await asyncio.gather(*(log.worker(embedder).drain() for _ in range(4)))
    assert sum(count for count, _ in done) == 800
    assert len(embedder.embedded) == len(set(embedder.embedded)) == 800


async def test_a_model_adopted_meanwhile_is_not_overwritten_by_a_late_worker(log: Log) -> None:
    await log.write("tide")
    await log.queue.adopt("hash-8", 8)
    await log.queue.catch_up()
    batch = await log.queue.take(10)
    assert batch is not None
    await log.queue.adopt("hash-16", 16)
    vectors = [*await HashEmbedder(8).embed(batch.texts)]
    assert not await log.queue.keep(batch, vectors, model="hash-8", dimension=8)
    assert await log.worker(HashEmbedder(16)).drain() == (1, "")


async def test_what_was_cleared_is_not_embedded_and_leaves_no_vector(log: Log) -> None:
    await log.write("tide", "moon")
    await log.queue.adopt("hash-8", 8)
    await log.queue.catch_up()
    batch = await log.queue.take(10)
    assert batch is not None
    await log.episodes().clear("s1")
    vectors = [*await HashEmbedder(8).embed(batch.texts)]
    assert await log.queue.keep(batch, vectors, model="hash-8", dimension=8)
    found = await log.queue.status()
    assert (found.embedded, found.waiting) == (0, 0)


async def test_what_is_appended_while_a_model_is_adopted_is_never_missed(log: Log) -> None:
    embedder = HashEmbedder(8)

    async def write(at: int) -> None:
        await log.write(f"tide {at}", session=f"s{at % 5}")
        await log.episodes().recall(ANA, "tide", limit=1)

    await asyncio.gather(*(write(at) for at in range(30)), log.queue.adopt("hash-8", 8))
    await log.worker(embedder).drain()
    found = await log.queue.status()
    assert (found.embedded, found.waiting) == (30, 0)


async def test_the_background_follows_all_tenants_of_its_model(engine: Postgres) -> None:
    home, same, other = Log(engine), Log(engine), Log(engine)
    embedder = HashEmbedder(24)
    await same.queue.adopt("hash-24", 24)
    await other.queue.adopt("hash-8", 8)
    for one in (home, same, other):
        await one.write("tide")
    task = asyncio.create_task(
        follow(
            lambda tenant: PostgresEmbeddingQueue(engine, tenant=tenant),
            lambda model: tenants_waiting(engine, model),
            embedder,
            home=home.tenant,
            poll_seconds=0.01,
        )
    )
    async with asyncio.timeout(60):
        while [(await one.queue.status()).embedded for one in (home, same)] != [1, 1]:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert (await other.queue.status()).embedded == 0


async def _free(log: Log) -> None:
    """Let the time of whoever took something be over."""
    async with as_keeper(log.engine) as connection:
        await connection.execute(
            "UPDATE holdfast.unembedded_events SET taken_until = '-infinity' WHERE tenant = $1",
            log.tenant,
        )


class SilentEmbedder(HashEmbedder):
    """One that never answers, and says when it was asked."""

    def __init__(self) -> None:
        super().__init__(8)
        self.asked = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, mode: EmbeddingMode = "passage") -> Any:
        self.asked.set()
        await asyncio.Event().wait()
        return await super().embed(texts, mode=mode)


async def test_closing_a_state_gives_back_what_its_worker_had_taken() -> None:
    embedder = SilentEmbedder()
    async with empty_database() as url:
        async with holdfast.open(url, embedder=embedder) as state:
            memory = state.memory(ANA, session_id="s1")
            await memory.record_many([("note", {"note": f"tide {at}"}) for at in range(3)])
            await asyncio.wait_for(embedder.asked.wait(), 60)
        engine = await Postgres.open(url, max_connections=2)
        # Nothing needs to expire first.
        worker = EmbeddingWorker(PostgresEmbeddingQueue(engine), HashEmbedder(8))
        assert await worker.drain() == (3, "")
        await engine.aclose()


async def test_a_worker_that_is_stopped_while_it_takes_a_batch_gives_it_back(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, take = asyncio.Event(), log.queue.take

    async def slow(limit: int, *, seconds: float = 120) -> Any:
        found = await take(limit, seconds=seconds)
        taken.set()
        await asyncio.sleep(0.1)
        return found

    await log.queue.adopt("hash-8", 8)
    await log.write("tide")
    monkeypatch.setattr(log.queue, "take", slow)
    draining = asyncio.create_task(log.worker(HashEmbedder(8)).drain())
    await asyncio.wait_for(taken.wait(), 60)
    draining.cancel()
    await asyncio.wait([draining])
    assert draining.cancelled()
    monkeypatch.undo()
    assert await log.worker(HashEmbedder(8)).drain() == (1, "")
