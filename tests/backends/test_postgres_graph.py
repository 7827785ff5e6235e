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

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.graph import PostgresGraph
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.errors import NotFoundError
from holdfast.kernel.storage.graph import Entity, Relationship
from tests.backends.postgres_database import connected, empty_database, generic_plan

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True)
class Scene:
    """A store in a database of the test's own, and a connection to it."""

    store: PostgresGraph
    around: Any


@pytest_asyncio.fixture(loop_scope="session")
async def scene() -> AsyncIterator[Scene]:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        async with connected(url) as connection:
            yield Scene(PostgresGraph(engine, tenant="t"), connection)
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
        "WHERE NOT EXISTS (SELECT FROM holdfast.entities e WHERE e.id = r.source) "
        "OR NOT EXISTS (SELECT FROM holdfast.entities e WHERE e.id = r.target)"
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
    found = await scene.store.get_neighbors("e0000", depth=10**6, direction="out")
    assert ([one.id for one in found.entities], found.truncated) == (names, False)
    assert len(found.relationships) == 799
    found = await scene.store.get_neighbors("e0000", depth=10**6, max_entities=100)
    assert ([one.id for one in found.entities], found.truncated) == (names[:100], True)


async def test_a_walk_reads_by_index_in_both_directions(scene: Scene) -> None:
    await scene.around.execute(
        "INSERT INTO holdfast.entities SELECT 't', 'e' || n, 'X', '{}' "
        "FROM generate_series(1, 20000) n;"
        "INSERT INTO holdfast.relationships SELECT 't', 'r' || n, 'e' || n % 9999, 'e' || n / 5, "
        "'x', '{}' FROM generate_series(1, 50000) n"
    )
    await scene.around.execute("VACUUM ANALYZE")
    plan = await generic_plan(scene.around, load("graph")["walk"])
    assert "Index Only Scan using relationships_leaving" in plan, plan
    assert "Index Only Scan using relationships_reaching" in plan, plan
    assert "Seq Scan on" not in plan, plan
