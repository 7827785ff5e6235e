"""Long sessions: writing, indexing and recall read few rows of them, and ties are cut right.

Nothing has analysed the tables: it is then that a planner takes an index that does not fit.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.postgres.embedding_queue import PostgresEmbeddingQueue
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.indexing import index_batch
from holdfast.testing.inmemory import InMemoryHarness
from holdfast.values.events import Event
from holdfast.values.identity import ALL_AGENTS, AgentId
from tests.engines.postgres_database import as_keeper, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA, BOB = AgentId("writer", "ana"), AgentId("writer", "bob")
SIZE, BATCHES = 40, 30


async def _rows_read(engine: Postgres, call: Callable[[], Awaitable[Any]]) -> int:
    """How many rows of our tables a call reads; the engine has one connection."""
    count = (
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables "
        "WHERE schemaname = 'holdfast'"
    )

    async def counted() -> int:
        async with engine.connection(writes=True) as connection:
            await connection.bare.execute("SELECT pg_stat_force_next_flush()")
            return int(await connection.bare.fetchval(count))

    before = await counted()
    await call()
    return await counted() - before


def _batch(at: int, size: int = SIZE) -> list[Event]:
    return [
        Event(ANA, "s1", "note", {"note": f"tide {at} {one}"}, id=f"e{at:03}-{one:03}")
        for one in range(size)
    ]


async def test_a_batch_reads_as_many_rows_in_a_long_session_as_in_a_short_one() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        async with as_keeper(engine) as keeper:
            await keeper.execute("ALTER TABLE holdfast.events SET (autovacuum_enabled = off)")
        store = EpisodicMemory(PostgresEpisodes(engine))
        new = [await _rows_read(engine, partial(store.append, _batch(at))) for at in range(BATCHES)]
        again = [
            await _rows_read(engine, partial(store.append, _batch(at))) for at in (1, BATCHES - 1)
        ]
        mixed = [
            await _rows_read(engine, partial(store.append, _batch(at, SIZE + 5)))
            for at in (1, BATCHES - 1)
        ]
        await engine.aclose()
    assert max(new[1:]) < SIZE
    assert max(again) <= 3 * SIZE
    assert max(mixed) <= 4 * SIZE


async def test_indexing_reads_as_many_rows_in_a_long_session_as_in_a_short_one() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        async with as_keeper(engine) as keeper:
            for table in ("events", "event_numbers"):
                await keeper.execute(f"ALTER TABLE holdfast.{table} SET (autovacuum_enabled = off)")
        store = EpisodicMemory(PostgresEpisodes(engine))
        for at in range(BATCHES):
            await store.append(_batch(at))

        async def fetch(sql: Any, *args: Any) -> Sequence[Any]:
            return await engine.fetch(sql, *args, safe=True)

        async def index() -> None:
            assert await index_batch(fetch, "default", str(ANA), limit=SIZE) == SIZE

        read = [await _rows_read(engine, index) for _ in range(BATCHES)]
        await engine.aclose()
    # The events of the batch, in one or two ranges, and the 256 before each that could be messages.
    assert max(read) < 2 * 256 + 4 * SIZE


@pytest.mark.parametrize("analysed", [False, True])
async def test_embedding_reads_as_many_rows_in_a_long_session_as_in_a_short_one(
    analysed: bool,
) -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        async with as_keeper(engine) as keeper:
            for table in ("events", "event_numbers", "event_vectors", "unembedded_events"):
                await keeper.execute(f"ALTER TABLE holdfast.{table} SET (autovacuum_enabled = off)")
        store = EpisodicMemory(PostgresEpisodes(engine))
        queue = PostgresEmbeddingQueue(engine)
        await queue.adopt("tiny", 2)
        for at in range(BATCHES):
            await store.append(_batch(at))
        await queue.catch_up()
        if analysed:
            async with as_keeper(engine) as keeper:
                await keeper.execute("ANALYZE")

        async def embed() -> None:
            batch = await queue.take(SIZE)
            assert batch is not None
            assert len(batch.positions) == SIZE
            await queue.keep(batch, [[0.6, 0.8]] * SIZE, model="tiny", dimension=2)

        read = [await _rows_read(engine, embed) for _ in range(BATCHES)]
        await engine.aclose()
    assert max(read) < 7 * SIZE


async def test_of_very_many_equal_scores_the_first_positions_are_ranked_as_in_memory() -> None:
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    events = [
        Event(ANA, f"s{at % 7}", "note", {"note": "low tide"}, id=f"t{at:04}", occurred_at=noon)
        for at in range(900)
    ]
    better = [
        Event(ANA, "s3", "note", {"note": "tide tide"}, id=f"b{at}", occurred_at=noon)
        for at in range(5)
    ]
    memory = InMemoryHarness()
    await memory.open()
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=2)
        found = []
        for store in (memory.store("episodes"), EpisodicMemory(PostgresEpisodes(engine))):
            await store.append([*events, *better])
            hits = [
                await store.recall(ANA, "tide", limit=limit, session_id=session)
                for limit, session in ((5, None), (100, None), (300, None), (100, "s2"))
            ]
            found.append([[(one.event.id, round(one.score, 9)) for one in part] for part in hits])
        await engine.aclose()
    await memory.close()
    assert [len(part) for part in found[0]] == [5, 100, 300, 100]
    assert found[0] == found[1]


@pytest.mark.parametrize("analysed", [False, True])
async def test_a_word_of_all_events_is_answered_from_few_of_them(analysed: bool) -> None:
    count = 8000
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        async with as_keeper(engine) as keeper:
            for table in ("events", "event_numbers", "event_blocks", "sessions"):
                await keeper.execute(f"ALTER TABLE holdfast.{table} SET (autovacuum_enabled = off)")
        store = EpisodicMemory(PostgresEpisodes(engine))
        texts = [{"note": f"tide {at}"} for at in range(count)]
        await store.append([Event(ANA, "s1", "note", text) for text in texts])
        await store.recall(ANA, "indexed?")
        if analysed:
            async with as_keeper(engine) as keeper:
                await keeper.execute("ANALYZE")
        for agent, session in ((ANA, None), (ANA, "s1"), (ALL_AGENTS, None)):
            recall = partial(store.recall, agent, "tide", limit=100, session_id=session)
            read = await _rows_read(engine, recall)
            assert [one.event.seq for one in await recall()] == list(range(1, 101))
            # Of each block its size and its bound; of one block and of the first events of the log
            # each event; and what is returned.
            assert read < 2 * count / 256 + 2 * 256 + 1000
        await engine.aclose()


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_hits_of_a_word_that_most_events_have_are_those_in_memory(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same every time
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)

    def batch(start: int, count: int, words: int) -> list[Event]:
        texts = ["tide" if rng.random() < 0.9 else "gull" for _ in range(count)]
        return [
            Event(
                rng.choice([ANA, ANA, BOB]),
                f"s{rng.choice([9, 1, 5, 3])}",
                "message",
                {"role": "user", "content": f"{text} low" + " high" * rng.randrange(words)},
                id=f"e{start + at:05}",
                run_id="gone" if rng.random() < 0.02 else "kept",
                occurred_at=noon,
            )
            for at, text in enumerate(texts)
        ]

    memory = InMemoryHarness()
    await memory.open()
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=2)
        both = (memory.store("episodes"), EpisodicMemory(PostgresEpisodes(engine)))
        # The last batch has shorter texts, so that blocks differ in what they can give.
        for start, words in ((0, 1), (4000, 1), (8000, 3)):
            events = batch(start, 4000, words)
            found = []
            for store in both:
                await store.append(events)
                for agent in (ANA, BOB):
                    await store.recall(agent, "indexed?")
                # What follows a removed event is indexed again, and has a later number.
                await store.clear("s1", run_id="gone")
                hits = [
                    await store.recall(agent, question, limit=limit, session_id=session)
                    for question in ("tide", "low")
                    for agent in (ANA, ALL_AGENTS)
                    for limit, session in ((5, None), (150, None), (100, "s5"), (5, "s9"))
                ]
                found.append(
                    [[(one.event.id, round(one.score, 9)) for one in part] for part in hits]
                )
            assert found[0] == found[1]
        await engine.aclose()
    await memory.close()
