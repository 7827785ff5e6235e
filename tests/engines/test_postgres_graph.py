"""The graph on Postgres: what many writers leave behind, long names, and long walks."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from holdfast.contracts.graph import KnowledgeGraph
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.graph import InMemoryGraph
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.graph import PostgresGraph
from holdfast.engines.postgres.queries import load
from holdfast.values.errors import NotFoundError
from holdfast.values.graph import Entity, Relationship
from holdfast.values.limits import Limits
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
DIRECTIONS = ("both", "out", "in")


@dataclass(frozen=True)
class Scene:
    """A store in a database of the test's own, and a connection to it."""

    store: KnowledgeGraph
    around: Any


@pytest_asyncio.fixture(loop_scope="session")
async def scene() -> AsyncIterator[Scene]:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        async with connected(url) as connection:
            yield Scene(KnowledgeGraph(PostgresGraph(engine, tenant="t")), connection)
        await engine.aclose()


async def test_writers_of_overlapping_batches_neither_wait_forever_nor_leave_loose_ends(
    scene: Scene,
) -> None:
    dice = random.Random(5)  # noqa: S311 - not a secret
    names = [f"e{at}" for at in range(8)]

    async def write() -> None:
        for _ in range(30):
            roll = dice.random()
            some = dice.sample(names, 4)
            try:
                if roll < 0.35:
                    await scene.store.add_entities(
                        [Entity("X", {"name": one}, one) for one in some]
                    )
                elif roll < 0.8:
                    await scene.store.add_relationships(
                        [
                            Relationship(dice.choice(names), dice.choice(names), "x", {}, f"r{at}")
                            for at in dice.sample(range(10), 4)
                        ]
                    )
                else:
                    await scene.store.delete_entity(some[0])
            except NotFoundError:
                pass

    await asyncio.gather(*(write() for _ in range(10)))
    loose = await scene.around.fetchval(
        "SELECT count(*) FROM holdfast.relationships r "
        "WHERE NOT EXISTS (SELECT FROM holdfast.entities e WHERE e.number = r.source) "
        "OR NOT EXISTS (SELECT FROM holdfast.entities e WHERE e.number = r.target)"
    )
    unnamed = await scene.around.fetchval(
        "SELECT count(*) FROM holdfast.entities e "
        "FULL JOIN holdfast.entity_names n ON n.entity = e.id WHERE n.name IS NULL OR e.id IS NULL"
    )
    assert (loose, unnamed) == (0, 0)


async def test_a_name_longer_than_an_index_takes_is_found(scene: Scene) -> None:
    dice = random.Random(6)  # noqa: S311 - not a secret
    name = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=20_000))
    entity = Entity("X", {"name": name}, "long")
    await scene.store.add_entities([entity, Entity("X", {"name": name[:-1]}, "other")])
    assert await scene.store.find_entities([name.upper()]) == [entity]


async def test_a_walk_along_a_long_chain_comes_to_its_end(scene: Scene) -> None:
    names = [f"e{at:04}" for at in range(800)]
    await scene.store.add_entities([Entity("X", {}, name) for name in names])
    await scene.store.add_relationships(
        [
            Relationship(one, other, "next", {}, f"r{one}")
            for one, other in itertools.pairwise(names)
        ]
    )
    scene.store.use_limits(Limits(walk_depth=0))
    found = await scene.store.get_neighbors("e0000", depth=10**6, direction="out")
    assert ([one.id for one in found.entities], found.truncated) == (names, False)
    assert len(found.relationships) == 799
    found = await scene.store.get_neighbors("e0000", depth=10**6, limit=100)
    assert ([one.id for one in found.entities], found.truncated) == (names[:100], True)


async def test_a_walk_finds_what_the_in_memory_engine_finds(scene: Scene) -> None:
    dice = random.Random(7)  # noqa: S311 - not a secret
    names = [f"e{at}" for at in range(40)]
    entities = [Entity("X", {"at": at} if at % 3 else {}, name) for at, name in enumerate(names)]
    edges = [
        Relationship(
            *(dice.choice(names), dice.choice(names), dice.choice("xyz")),
            *({"at": at} if at % 2 else {}, f"r{at}"),
        )
        for at in range(70)
    ]
    model = KnowledgeGraph(InMemoryGraph(InMemory(), tenant="t"))
    for store in (scene.store, model):
        store.use_limits(Limits(walk_depth=0, walk_entities=0))
        await store.add_entities(entities)
        await store.add_relationships(edges)
    seen = set()
    for depth, most, types, direction in itertools.product(
        (0, 1, 2, 3, 10**9), (0, 1, 5, 14, 39, 40, 2**62), (None, [], ["x", "y"]), DIRECTIONS
    ):
        start = dice.choice(names)
        options: dict[str, Any] = {
            "depth": depth,
            "relationship_types": types,
            "direction": direction,
            "limit": most,
        }
        found = await scene.store.get_neighbors(start, **options)
        assert found == await model.get_neighbors(start, **options), (start, options)
        seen.add((found.truncated, len(found.entities)))
    assert {True, False} == {truncated for truncated, _ in seen}
    assert len(seen) > 10


async def test_around_a_hub_a_walk_goes_no_further_than_its_cap(scene: Scene) -> None:
    leaves = [f"l{at:04}" for at in range(3000)]
    beyond = [f"b{at:04}" for at in range(3000)]
    await scene.store.add_entities([Entity("X", {}, name) for name in ("hub", *leaves, *beyond)])
    await scene.store.add_relationships(
        [Relationship("hub", leaf, "x", {}, f"r{leaf}") for leaf in leaves]
        + [Relationship(*ends, "y", {}, f"r{ends[1]}") for ends in zip(leaves, beyond, strict=True)]
    )
    found = await scene.store.get_neighbors("hub", depth=5, limit=100)
    assert [one.id for one in found.entities] == ["hub", *leaves[:99]]
    assert [one.id for one in found.relationships] == [f"r{leaf}" for leaf in leaves[:99]]
    assert found.truncated
    found = await scene.store.get_neighbors("l2000", depth=2, limit=5)
    assert [one.id for one in found.entities] == ["l2000", "b2000", "hub", *leaves[:2]]
    assert found.truncated
    found = await scene.store.get_neighbors("hub", depth=2, limit=10_000)
    assert [one.id for one in found.entities] == ["hub", *leaves, *beyond]
    assert (len(found.relationships), found.truncated) == (6000, False)
    # The hub's edges have to be read, to know which come first; not what is beyond its leaves.
    assert sum((await _read(scene, "hub", 5, 100)).values()) < 3000 * 5


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_walk_reads_by_index_and_only_what_it_reaches(
    scene: Scene, *, analyzed: bool
) -> None:
    # The plans are made while there is next to nothing, when reading all of it seems best.
    await scene.around.execute(_FILL, 1, 10)
    assert (await _read(scene, "e5", 2, 1000))["relationships"] == 0
    await scene.around.execute(_FILL, 11, 20_000)
    if analyzed:
        await scene.around.execute("VACUUM ANALYZE")
    read = await _read(scene, "e5", 2, 1000)
    assert (read["entities"], read["relationships"]) == (0, 0), read
    assert 0 < read["relationships_from"] < 200, read
    assert 0 < read["relationships_to"] < 200, read
    assert 0 < read["entities_of_tenant"] < 200, read


_FILL = """
WITH e AS (
    INSERT INTO holdfast.entities (tenant, id, body)
    SELECT 't', 'e' || n, '{"label":"X","id":"e' || n || '"}'
    FROM generate_series($1::int, $2::int) n RETURNING number
)
INSERT INTO holdfast.relationships (tenant, id, source, target, type, body)
SELECT 't', 'r' || e.number || '.' || n, e.number, (e.number * n) % 20000 + 1, 'x',
    '{"source_id":"","target_id":"","type":"x","id":"' || e.number || '.' || n || '"}'
FROM e, generate_series(1, 3) n
"""


async def _read(scene: Scene, start: str, depth: int, most: int) -> dict[str, int]:
    """How many rows of each table and entries of each index a walk has read.

    A table's own count is of what was read without an index.
    """
    async with scene.around.transaction():
        both = (True, True)
        await scene.around.fetch(load("graph")["walk"], "t", start, depth, None, *both, most)
        rows = await scene.around.fetch(
            "SELECT relname, pg_stat_get_xact_tuples_returned(c.oid) AS read FROM pg_class c "
            "WHERE relnamespace = 'holdfast'::regnamespace AND relname ~ '^(entit|relations)'"
        )
    return {row["relname"]: row["read"] for row in rows}
