"""Vectors on Postgres: the indexes of large collections, filters as SQL, and writers at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from holdfast.contracts.vectors import Vectors
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.filter_sql import FEW, MAX_PARAMETERS, FilterSql, filterable
from holdfast.engines.postgres.indexes import build_progress, index_collections
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.vector import HELD, MAX_DIMENSION, PostgresVectors
from holdfast.values.codec import encode_json
from holdfast.values.documents import Document
from holdfast.values.errors import InvalidInputError
from holdfast.values.filters import escape, matches, parse
from tests.engines.postgres_database import connected, empty_database, generic_plan

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True)
class Scene:
    """A store in a database of the test's own, and a connection to it."""

    store: Vectors
    around: Any
    engine: Postgres


@pytest_asyncio.fixture(loop_scope="session")
async def scene() -> AsyncIterator[Scene]:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        async with connected(url) as connection:
            yield Scene(Vectors(PostgresVectors(engine, tenant="t")), connection, engine)
        await engine.aclose()


async def _fill(store: Vectors, vectors: np.ndarray[Any, Any], collection: str) -> None:
    for start in range(0, len(vectors), 1000):
        await store.add(
            [
                Document.from_text("x", id=f"d{at}", embedding=one.tolist(), metadata={"n": at})
                for at, one in enumerate(vectors[start : start + 1000], start=start)
            ],
            collection=collection,
        )


def _nearest(vectors: np.ndarray[Any, Any], query: np.ndarray[Any, Any], n: int) -> set[str]:
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1)
    return {f"d{at}" for at in np.argsort(-cosines)[:n]}


async def test_a_large_collection_is_searched_through_its_index_and_always_gives_enough(
    scene: Scene,
) -> None:
    store, around, dice = scene.store, scene.around, np.random.default_rng(3)
    vectors = dice.normal(size=(6000, 16))
    await _fill(store, vectors, "large")
    await _fill(store, vectors[:50], "small")
    await around.execute("ANALYZE")
    done = [doing async for doing in index_collections(around, threshold=1000)]
    assert done == ["index the documents of dimension 16"]
    assert [doing async for doing in index_collections(around, threshold=1000)] == []
    marked = await around.fetch("SELECT name FROM holdfast.collections WHERE indexed")
    assert [row["name"] for row in marked] == ["large"]
    assert await build_progress(around) is None

    hits = 0
    for query in dice.normal(size=(40, 16)):
        found = await store.search(query.tolist(), collection="large", limit=5)
        assert len(found) == 5
        hits += len({one.id for one in found} & _nearest(vectors, query, 5))
        few = await store.search(query.tolist(), collection="large", filter={"n": {"$lt": 3}})
        assert {one.id for one in few} == {"d0", "d1", "d2"}
        one = await store.search(query.tolist(), collection="large", filter={"n": 77})
        assert [hit.id for hit in one] == ["d77"]
    assert hits >= 0.99 * 200
    scans = "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname = $1"
    await scene.engine.aclose()
    assert await around.fetchval(scans, "documents_near_16") >= 40


async def test_a_search_reads_one_collection_by_its_key_or_by_its_metadata(scene: Scene) -> None:
    for name in ("c", "d", "e", "f"):
        await _fill(scene.store, np.random.default_rng(1).normal(size=(2000, 3)), name)
    await scene.around.execute("ANALYZE")

    async def plan(wanted: dict[str, Any]) -> str:
        condition = FilterSql(parse(wanted), first=8, tenant="t", collection="c")
        sql = load("vector")["search"].replace("/* filter */ TRUE", condition.condition)
        if condition.indexed:
            sql = sql.replace("/* scope */ = TRUE", HELD.replace("$n", condition.more([])))
        return await generic_plan(scene.around, sql)

    by_key, by_metadata = await plan({}), await plan({"n": 7})
    for found in (by_key, by_metadata, await plan({"n": {"$gt": 7}})):
        assert "Seq Scan on documents" not in found, found
    assert "documents_filterable" not in by_key, by_key
    assert "documents_pkey" in by_metadata, by_metadata


async def test_a_filter_is_looked_up_in_its_index_though_there_is_a_policy(scene: Scene) -> None:
    for name in ("c", "d"):
        await _fill(scene.store, np.random.default_rng(1).normal(size=(2000, 3)), name)
    await scene.around.execute("ANALYZE")
    read = (
        "SELECT indexrelname, idx_scan, idx_tup_read FROM pg_stat_user_indexes "
        "WHERE relname = 'documents'"
    )
    before = {row[0]: row for row in await scene.around.fetch(read)}
    for at in range(10):
        wanted = {"$and": [{"n": {"$in": [at, 5000]}}, {"n": {"$gte": 0}}]}
        [hit] = await scene.store.search([1.0, 2.0, 3.0], collection="c", filter=wanted)
        assert hit.id == f"d{at}"
        nothing = await scene.store.search([1.0, 2.0, 3.0], collection="c", filter={"n": 5000})
        assert nothing == []
    await scene.engine.aclose()
    after = {row[0]: row for row in await scene.around.fetch(read)}
    by_metadata, by_key = "documents_filterable", "documents_pkey"
    assert after[by_metadata][1] - before[by_metadata][1] >= 20
    # For each search the first of the collection; for each hit the candidate, then the document.
    assert after[by_key][2] - before[by_key][2] <= 60


async def test_a_collection_that_shrank_is_searched_exactly_again(scene: Scene) -> None:
    store, around = scene.store, scene.around
    vectors = np.random.default_rng(4).normal(size=(60, 3))
    await _fill(store, vectors, "c")
    assert len([doing async for doing in index_collections(around, threshold=50)]) == 1
    await store.search([1.0, 0.0, 0.0], collection="c")
    await store.delete([f"d{at}" for at in range(20)], collection="c")
    assert [doing async for doing in index_collections(around, threshold=50)] == []
    assert await around.fetchval("SELECT indexed FROM holdfast.collections") is False
    assert len(await store.search([1.0, 0.0, 0.0], collection="c", limit=99)) == 40
    assert len(await store.search([1.0, 0.0, 0.0], collection="c", limit=99)) == 40


async def test_more_than_2000_dimensions_are_indexed_in_16_bits(scene: Scene) -> None:
    store, around, dice = scene.store, scene.around, np.random.default_rng(5)
    vectors = dice.normal(size=(60, 2100)) * 1e9
    await _fill(store, vectors, "c")
    assert len([doing async for doing in index_collections(around, threshold=50)]) == 1
    query = dice.normal(size=2100)
    found = await store.search(query.tolist(), collection="c", limit=5)
    assert {one.id for one in found} == _nearest(vectors, query, 5)
    await store.upsert(
        [Document.from_text("y", id="new", embedding=query.tolist())], collection="c"
    )
    [first, *_] = await store.search(query.tolist(), collection="c")
    assert (first.id, first.score) == ("new", 1.0)


async def test_beyond_4000_dimensions_every_search_is_exact(scene: Scene) -> None:
    store, around = scene.store, scene.around
    await _fill(store, np.random.default_rng(6).normal(size=(20, 4001)), "c")
    assert [doing async for doing in index_collections(around, threshold=10)] == []
    assert len(await store.search([1.0] * 4001, collection="c", limit=30)) == 20
    with pytest.raises(InvalidInputError, match=str(MAX_DIMENSION)):
        await store.add([Document.from_text("x", embedding=[1.0] * (MAX_DIMENSION + 1))])


async def test_a_build_that_was_broken_off_is_begun_again(scene: Scene) -> None:
    store, around = scene.store, scene.around
    await _fill(store, np.random.default_rng(7).normal(size=(30, 3)), "c")
    assert len([doing async for doing in index_collections(around, threshold=10)]) == 1
    await around.execute(
        "UPDATE pg_index SET indisvalid = false "
        "WHERE indexrelid = 'holdfast.documents_near_3'::regclass"
    )
    doing = [one async for one in index_collections(around, threshold=10)]
    assert [one.split()[0] for one in doing] == ["drop", "index"]
    assert await around.fetchval("SELECT indexed FROM holdfast.collections") is True


async def test_of_writers_with_different_dimensions_one_fixes_the_collections(scene: Scene) -> None:
    store, around = scene.store, scene.around
    for _ in range(5):
        outcomes = await asyncio.gather(
            *(
                store.upsert([Document.from_text("x", id=f"d{at}", embedding=[1.0] * (2 + at % 2))])
                for at in range(20)
            ),
            return_exceptions=True,
        )
        failed = [one for one in outcomes if isinstance(one, BaseException)]
        assert all(isinstance(one, InvalidInputError) for one in failed)
        dimensions = await around.fetch("SELECT DISTINCT dimension FROM holdfast.documents")
        assert (len(dimensions), len(failed)) == (1, 10)
        await store.delete([f"d{at}" for at in range(20)])


async def test_what_is_left_of_empty_collections_is_purged_and_no_documents_with_it(
    scene: Scene,
) -> None:
    store, around = scene.store, scene.around
    for name in ("empty", "full"):
        await store.add([Document.from_text("x", id="d", embedding=[1.0])], collection=name)
    await store.delete(["d"], collection="empty")
    assert await around.fetchval("SELECT holdfast.purge_collections(10)") == 1
    assert await around.fetchval("SELECT holdfast.purge_collections(10)") == 0
    assert await store.list_collections() == ["full"]
    assert len(await store.search([1.0], collection="full")) == 1


KEYS = ("a", "b", "0", "v1.2", "$x", "a\x00", "a\x01", "\x01", "")
SCALARS = (
    *(None, True, False, 0, 1, -1, 2.5, 1e16, 10**16, 2**53 + 1, 2.0**60, -0.0, 5e-324),
    *("", "a", "Z", "é", "a\x00b", "a\x01", "\x01", "\uffff", "\U0001f980", "1", "null"),
)


def _metadata(dice: random.Random, depth: int = 0) -> dict[str, Any]:
    def value() -> Any:
        roll = dice.random()
        if roll < 0.6 or depth > 2:
            return dice.choice(SCALARS)
        if roll < 0.8:
            return [dice.choice((*SCALARS, ["a"], {"a": 1})) for _ in range(dice.randrange(4))]
        return _metadata(dice, depth + 1)

    return {key: value() for key in dice.sample(KEYS, dice.randrange(5))}


def _filter(dice: random.Random, depth: int = 0) -> dict[str, Any]:
    roll = dice.random()
    if depth < 3 and roll < 0.25:
        parts = [_filter(dice, depth + 1) for _ in range(dice.randrange(3))]
        return {dice.choice(("$and", "$or")): parts}
    if depth < 3 and roll < 0.35:
        return {"$not": _filter(dice, depth + 1)}
    path = ".".join(escape(dice.choice(KEYS)) for _ in range(dice.choice((1, 1, 1, 2, 3))))
    operator = dice.choice(("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists"))
    if operator == "$exists":
        return {path: {operator: dice.random() < 0.5}}
    if operator in {"$in", "$nin"}:
        many = dice.choice((0, 1, 2, 3, FEW + 1, FEW + 9))
        return {path: {operator: [dice.choice(SCALARS) for _ in range(many)]}}
    ordered = [one for one in SCALARS if one is not None and not isinstance(one, bool)]
    return {path: {operator: dice.choice(SCALARS if operator in {"$eq", "$ne"} else ordered)}}


async def test_any_filter_as_sql_means_what_the_evaluator_says(scene: Scene) -> None:
    around, dice = scene.around, random.Random(11)  # noqa: S311 - not a secret
    rows = [_metadata(dice) for _ in range(40)]
    stored = [filterable(encode_json(row), tenant="t", collection="c") for row in rows]
    wrong = []
    for turn in range(800):
        wanted = _filter(dice)
        parsed = parse(wanted)
        condition = FilterSql(parsed, first=2, tenant="t", collection="c", planned=bool(turn % 2))
        passed = await around.fetchval(
            f"SELECT array_agg(d.at ORDER BY d.at) FROM (SELECT at, row::jsonb AS filterable "  # noqa: S608 - what is tested
            f"FROM unnest($1::text[]) WITH ORDINALITY AS i (row, at)) d "
            f"WHERE {condition.condition}",
            stored,
            *condition.parameters,
        )
        expected = [at for at, row in enumerate(rows, start=1) if matches(parsed, row)]
        if (passed or []) != expected:
            wrong.append((wanted, passed, expected))
    assert not wrong, wrong[:3]


async def test_a_filter_with_more_parameters_than_postgres_takes_is_refused() -> None:
    with pytest.raises(InvalidInputError) as refused:
        FilterSql(
            parse({"$or": [{"k": at} for at in range(MAX_PARAMETERS)]}),
            first=1,
            tenant="t",
            collection="c",
        )
    assert refused.value.field == "filter"
