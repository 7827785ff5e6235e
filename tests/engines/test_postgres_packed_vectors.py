"""Vectors as parameters: packed on our own connections, arrays on those that somebody lends us."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import holdfast
from holdfast.contracts.items import Items
from holdfast.engines import postgres
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.items import PostgresItems
from holdfast.engines.postgres.packed_vectors import pack, unpack
from holdfast.values.items import ItemKey, ItemPut
from tests.engines.postgres_database import empty_database, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOTES = ("notes",)
TINY, LARGE = 2.0**-40, 2.0**40
VECTORS = [[1.0, 0.0], [0.6000000238418579, 0.800000011920929], [TINY, 1.0], [LARGE, -LARGE]]


async def _put_and_found(engine: Postgres) -> list[str]:
    """The keys of items, the nearest first, after each was put alone and all were put again."""
    store = Items(PostgresItems(engine))
    puts = [ItemPut(NOTES, f"k{at}", {"at": at}, [one]) for at, one in enumerate(VECTORS)]
    for one in puts:
        await store.put_many([one])
    alone = [hit.item.key for hit in await store.search(NOTES, vector=[1.0, 0.25])]
    assert (await store.get_many([ItemKey(NOTES, "k1")]))[0] is not None
    await store.put_many(puts)
    assert [hit.item.key for hit in await store.search(NOTES, vector=[1.0, 0.25])] == alone
    return alone


async def _stored(url: str) -> list[list[float]]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT public.vector_send(vectors[1]) AS vector FROM holdfast.items ORDER BY key"
        )
    finally:
        await connection.close()
    return [unpack(row["vector"]).tolist() for row in rows]


async def test_a_new_database_packs_vectors_as_soon_as_it_has_its_schema() -> None:
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        await state.items.put_many([ItemPut(NOTES, "k", {}, [[1.0, 0.5]])])
        [hit] = await state.items.search(NOTES, vector=[1.0, 0.5])
        assert hit.score == 1.0
        assert await _stored(url) == [[1.0, 0.5]]


async def test_our_own_connections_send_vectors_as_such() -> None:
    types = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE statement LIKE $1"
    async with migrated_database() as url:
        engine = await Postgres.open(url, max_connections=1)
        await _put_and_found(engine)
        async with engine.connection(writes=False) as lent:
            for statement in ("%put_item(%", "%row_number() OVER (ORDER BY f.distance%"):
                [row] = await lent.bare.fetch(types, statement)
                assert "vector" in row["parameter_types"], statement
        await engine.aclose()


async def _none(_connection: Any) -> None:
    """A pool whose connections are as the driver makes them."""


async def _as_text(connection: Any) -> None:
    """What a user of pgvector may set up: another form of the same type."""
    await connection.set_type_codec("vector", schema="public", encoder=str, decoder=str)


@pytest.mark.parametrize("init", [_none, _as_text])
async def test_a_borrowed_pool_may_have_its_own_form_of_vectors(init: Any) -> None:
    async with migrated_database() as url:
        own = await Postgres.open(url, max_connections=2)
        packed = await _put_and_found(own)
        await own.aclose()
        stored = await _stored(url)
        assert stored == VECTORS
        role = {"server_settings": {"role": "holdfast_app"}}
        async with asyncpg.create_pool(url, min_size=1, max_size=2, init=init, **role) as pool:
            borrowed = await Postgres.from_pool(pool)
            assert await _put_and_found(borrowed) == packed
            assert await _stored(url) == stored


async def test_no_statement_makes_a_vector_of_a_parameter_in_another_way() -> None:
    """Else the driver sends it number by number."""
    folder = Path(postgres.__file__).parent / "sql"
    made = re.compile(r"\$[0-9]+(?:::[a-z]+(?:\[\])?)*::public\.vector\b(?!\[)")
    found = [one for path in folder.glob("*.sql") for one in made.findall(path.read_text())]
    assert len(found) > 10
    assert {re.sub(r"\$[0-9]+", "$n", one) for one in found} == {"$n::real[]::public.vector"}


async def test_a_vector_is_packed_in_the_format_that_pgvector_reads() -> None:
    for one in VECTORS:
        assert unpack(pack(one)).tolist() == one
    async with migrated_database() as url:
        connection = await asyncpg.connect(url)
        text = "[" + ",".join(map(repr, VECTORS[1])) + "]"
        sent = await connection.fetchval(f"SELECT public.vector_send('{text}'::public.vector)")
        await connection.close()
    assert sent == pack(VECTORS[1])
