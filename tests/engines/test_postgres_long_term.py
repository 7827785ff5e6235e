"""Long-term memory on Postgres: as the in-memory engine ranks, and nothing left behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
import pytest_asyncio

from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.long_term import LongTerm
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.graph import InMemoryGraph
from holdfast.engines.inmemory.long_term import InMemoryLongTerm
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.graph import PostgresGraph
from holdfast.engines.postgres.long_term import PostgresLongTerm
from holdfast.engines.postgres.queries import load
from holdfast.values.errors import ConflictError, NotFoundError
from holdfast.values.facts import RecallMode
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId
from tests.engines.postgres import server
from tests.engines.postgres_database import connected, empty_database, generic_plan

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN = AgentId("helper", "ann")
WORDS = ("tide", "moon", "salt", "rock", "zoe", "ravi", "low", "high", "boat", "café")
ENTITIES = ("zoe", "ravi", "moon")
INDEXES = ("fact_texts", "fact_postings", "fact_vectors", "fact_links")


@dataclass(frozen=True)
class Scene:
    """A database of the test's own, and a connection to it."""

    engine: Postgres
    around: Any

    def store(self, **options: Any) -> LongTerm:
        return LongTerm(PostgresLongTerm(self.engine, tenant="t"), **options)


@pytest_asyncio.fixture(loop_scope="session")
async def scene() -> AsyncIterator[Scene]:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        async with connected(url) as connection:
            yield Scene(engine, connection)
        await engine.aclose()


async def _save(stores: list[Any], dice: random.Random, source: str) -> None:
    text = " ".join(dice.choices(WORDS, k=dice.randrange(7)))
    options = {
        "source": source,
        "topic": dice.choice(("", "t1")),
        "confidence": dice.choice((0.25, 0.5, 1.0)),
        "entities": dice.sample(ENTITIES, dice.choice((0, 0, 1, 2))),
    }
    for store in stores:
        await store.save(ANN, text, **options)


async def test_every_mode_ranks_as_the_in_memory_engine_does(scene: Scene) -> None:
    dice = random.Random(9)  # noqa: S311 - not a secret
    engine, embedder = InMemory(), HashEmbedder(16)
    graphs = [
        KnowledgeGraph(PostgresGraph(scene.engine, tenant="t")),
        KnowledgeGraph(InMemoryGraph(engine)),
    ]
    for graph in graphs:
        await graph.add_entities([Entity("X", {}, name) for name in ENTITIES])
        await graph.add_relationships([Relationship("zoe", "ravi", "knows", {}, "r")])
    pairs = {
        mode: [
            scene.store(embedder=embedder, graph=graphs[0], mode=mode),
            LongTerm(InMemoryLongTerm(engine), embedder=embedder, graph=graphs[1], mode=mode),
        ]
        for mode in get_args(RecallMode)
    }
    for turn in range(60):
        await _save(pairs["text"], dice, f"s{turn}")
        if turn % 4:
            continue
        query = " ".join(dice.choices(WORDS, k=dice.randrange(1, 4)))
        narrow: dict[str, Any] = {"limit": 100}
        narrow |= {"topic": "t1"} if dice.random() < 0.3 else {}
        narrow |= {"min_confidence": 0.5} if dice.random() < 0.3 else {}
        for mode, stores in pairs.items():
            ours, theirs = [await store.search(ANN, query, **narrow) for store in stores]
            expected = {memory.source: memory for memory in theirs}
            assert {memory.source for memory in ours} == expected.keys()
            # The cosines of the database have 32 bits, and six digits.
            near = 1e-9 if mode in {"text", "graph"} else 1e-4
            for memory in ours:
                other = expected[memory.source]
                assert memory.score == pytest.approx(other.score, abs=near), (mode, query)
                assert memory.found_by == other.found_by
            if mode in {"text", "graph"}:
                assert [memory.source for memory in ours] == list(expected)


async def test_savers_deleters_and_searchers_at_once_leave_no_loose_ends(scene: Scene) -> None:
    graph = KnowledgeGraph(PostgresGraph(scene.engine, tenant="t"))
    await graph.add_entities([Entity("X", {}, name) for name in ENTITIES])
    dice = random.Random(10)  # noqa: S311 - not a secret
    english = scene.store(embedder=HashEmbedder(4), graph=graph)
    german = scene.store(embedder=HashEmbedder(8), graph=graph, language="german")
    ids: list[str] = ["nobody"]

    async def act() -> None:
        for _ in range(25):
            store, roll, old = dice.choice((english, german)), dice.random(), dice.choice(ids)
            try:
                if roll < 0.45:
                    text = " ".join(dice.choices(WORDS, k=4))
                    key = dice.choice((None, "k1", "k2"))
                    replaced = old if dice.random() < 0.5 else None
                    about = dice.sample(ENTITIES, 1)
                    ids.append(
                        await store.save(
                            ANN, text, supersedes=replaced, idempotency_key=key, entities=about
                        )
                    )
                elif roll < 0.6:
                    await store.delete(ANN, old)
                elif roll < 0.65:
                    await store.clear(ANN)
                else:
                    await store.search(ANN, dice.choice(WORDS))
            except (NotFoundError, ConflictError):
                pass

    await asyncio.gather(*(act() for _ in range(8)))
    await english.search(ANN, "tide")
    await german.search(ANN, "tide")
    live = await scene.around.fetchval(
        "SELECT count(*) FROM holdfast.facts WHERE superseded_by IS NULL"
    )
    for table in INDEXES:
        loose = await scene.around.fetchval(
            f"SELECT count(*) FROM holdfast.{table} i WHERE NOT EXISTS ("  # noqa: S608 - our own names
            "SELECT FROM holdfast.facts f WHERE f.scope = i.scope AND f.number = i.number "
            "AND f.superseded_by IS NULL)"
        )
        assert loose == 0, table
    for table in ("fact_texts", "fact_vectors"):
        count = f"SELECT count(*) FROM holdfast.{table}"  # noqa: S608 - our own names
        assert await scene.around.fetchval(count) == 2 * live
    lexemes = await scene.around.fetchval(
        "SELECT coalesce(sum(cardinality(lexemes)), 0) FROM holdfast.fact_texts"
    )
    assert await scene.around.fetchval("SELECT count(*) FROM holdfast.fact_postings") == lexemes


async def test_what_was_saved_in_another_language_is_found_before_and_after_a_search(
    scene: Scene,
) -> None:
    english, german = scene.store(), scene.store(language="german")
    for text in ("die Häuser am Meer", "ein Haus im Wald"):
        await english.save(ANN, text)
        assert (await german.search(ANN, "Haus"))[0].content == text
    await german.save(ANN, "the tides rise")
    assert len(await german.search(ANN, "Häuser")) == 2
    assert [memory.content for memory in await english.search(ANN, "tide")] == ["the tides rise"]


async def test_a_word_longer_than_an_index_takes_is_found(scene: Scene) -> None:
    dice = random.Random(6)  # noqa: S311 - not a secret
    word = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=20_000))
    await scene.store().save(ANN, f"a long {word}")
    [found] = await scene.store().search(ANN, word)
    assert found.content == f"a long {word}"


async def test_the_same_save_again_is_the_same_memory_when_its_entity_is_gone(
    scene: Scene,
) -> None:
    graph = KnowledgeGraph(PostgresGraph(scene.engine, tenant="t"))
    store = scene.store(graph=graph)
    await graph.add_entities([Entity("X", {}, "zoe")])
    saved = await store.save(ANN, "likes tea", entities=["zoe"], idempotency_key="k")
    await graph.delete_entity("zoe")
    assert await store.save(ANN, "likes tea", entities=["zoe"], idempotency_key="k") == saved
    with pytest.raises(ConflictError):
        await store.save(ANN, "likes coffee", entities=["zoe"], idempotency_key="k")
    with pytest.raises(NotFoundError):
        await store.save(ANN, "likes tea", entities=["zoe"])


async def test_a_purge_removes_the_expired_with_all_that_belongs_to_them(scene: Scene) -> None:
    store = scene.store(embedder=HashEmbedder(4))
    kept = await store.save(ANN, "kept tide")
    for at in range(5):
        await store.save(ANN, f"tide {at}", ttl_seconds=1)
    await store.search(ANN, "tide")
    await scene.around.execute(
        "UPDATE holdfast.facts SET expires_at = expires_at - interval '1 hour'"
    )
    assert await scene.around.fetchval("SELECT holdfast.purge_facts(3)") == 3
    assert await scene.around.fetchval("SELECT holdfast.purge_facts(3)") == 2
    assert await scene.around.fetchval("SELECT holdfast.purge_facts(3)") == 0
    for table in ("facts", "fact_texts", "fact_vectors"):
        count = f"SELECT count(*) FROM holdfast.{table}"  # noqa: S608 - our own names
        assert await scene.around.fetchval(count) == 1
    assert [memory.id for memory in await store.search(ANN, "tide")] == [kept]


async def test_an_update_leaves_nothing_of_the_old_fact_in_the_index(scene: Scene) -> None:
    graph = KnowledgeGraph(PostgresGraph(scene.engine, tenant="t"))
    await graph.add_entities([Entity("X", {}, name) for name in ENTITIES])
    store = scene.store(embedder=HashEmbedder(4), graph=graph)
    old = await store.save(ANN, "tide moon", entities=["zoe"])
    await store.search(ANN, "tide")
    await store.update(ANN, old, "salt rock")
    [hit] = await store.search(ANN, "salt")
    assert hit.entities == ("zoe",)
    numbers = {
        table: {
            row["number"]
            for row in await scene.around.fetch(f"SELECT number FROM holdfast.{table}")  # noqa: S608 - our own names
        }
        for table in ("facts", *INDEXES)
    }
    assert len(numbers.pop("facts")) == 2
    assert len(set.union(*numbers.values())) == 1


async def test_listing_and_updating_facts_take_one_round_trip_each(tmp_path: Path) -> None:
    behind, counted = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    async with empty_database() as direct, counted.between(listen, behind.folder / listen.name):
        url = direct.replace(str(behind.folder), str(tmp_path))
        engine = await Postgres.open(url, auto_migrate=True)
        store = LongTerm(PostgresLongTerm(engine, tenant="t"))
        ids = [await store.save(ANN, "low tide")]

        async def update() -> None:
            ids.append(await store.update(ANN, ids[-1], "high tide"))

        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "list": lambda: store.list(ANN, topic="t", superseded=True),
            "namespaces": lambda: store.namespaces(ANN),
            "update": update,
        }
        for name, call in calls.items():
            await call()
            before = counted.count
            await call()
            assert counted.count - before == 1, name
        await engine.aclose()


async def test_a_search_looks_at_one_scope_only(scene: Scene) -> None:
    graph = KnowledgeGraph(PostgresGraph(scene.engine, tenant="t"))
    await graph.add_entities([Entity("X", {}, name) for name in ENTITIES])
    store = scene.store(embedder=HashEmbedder(4), graph=graph)
    dice = random.Random(3)  # noqa: S311 - not a secret
    for agent in range(40):
        for _ in range(20):
            text = " ".join(dice.choices(WORDS, k=5))
            await store.save(AgentId("a", str(agent)), text, entities=[dice.choice(ENTITIES)])
        await store.search(AgentId("a", str(agent)), "tide")
    await scene.around.execute(
        "INSERT INTO holdfast.fact_scopes (tenant, namespace, agent, languages) "
        "SELECT 't', 'n' || at % 50, 'other/' || at / 50, '{english}' "
        "FROM generate_series(1, 5000) at"
    )
    await scene.around.execute("ANALYZE")
    for name in ("search", "recent", "list", "namespaces"):
        plan = await generic_plan(scene.around, load("long_term")[name])
        for table in ("facts", "fact_scopes", *INDEXES):
            assert f"Seq Scan on {table} " not in plan, plan
