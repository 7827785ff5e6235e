"""Vectors as parameters: packed on our own connections, arrays on those that somebody lends us."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

import holdfast
from holdfast.contracts.items import Items
from holdfast.engines import postgres
from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.items import PostgresItems
from holdfast.engines.postgres.packed_vectors import pack, unpack
from holdfast.testing.postgres_server import PASSWORD
from holdfast.values.errors import UnavailableError
from holdfast.values.items import ItemKey, ItemPut
from tests.engines.postgres import server
from tests.engines.postgres_database import empty_database, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
READY = b"Z\0\0\0\5"
"""The beginning of the message with which a server ends the login."""
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


async def test_a_connection_from_before_the_schema_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process may migrate between our first connection and the look at the schema."""
    status = migrate.status

    async def after_another_process(connection: Any) -> migrate.SchemaStatus:
        monkeypatch.setattr(migrate, "status", status)
        other = await asyncpg.connect(url)
        await migrate.migrate(other)
        await other.close()
        return await status(connection)

    async with empty_database() as url:
        monkeypatch.setattr(migrate, "status", after_another_process)
        engine = await Postgres.open(url, max_connections=1)
        await _put_and_found(engine)
        await engine.aclose()


@asynccontextmanager
async def _silent_after_login(url: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """A URL through a proxy, and what cuts it: then only logins are forwarded."""
    to, writers, silent = urlsplit(url), list[Any](), list[bool]()

    async def forward(reader: Any, writer: Any, *, until_ready: bool) -> None:
        while data := await reader.read(65536):
            if until_ready or writer.ready:
                writer.write(data)
            if until_ready and data[-6:-1] == READY:
                writer.partner.ready = not silent

    async def serve(reader: Any, writer: Any) -> None:
        there: Any
        away: Any
        there, away = await asyncio.open_connection("127.0.0.1", server(18).port)
        away.ready, writer.partner = True, away
        writers.extend((writer, away))
        await asyncio.gather(
            forward(reader, away, until_ready=False),
            forward(there, writer, until_ready=True),
            return_exceptions=True,
        )

    def cut() -> None:
        silent.append(True)
        for one in writers:
            one.transport.abort()

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    try:
        yield f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}{to.path}", cut
    finally:
        cut()
        proxy.close()


@pytest.mark.parametrize("connect_seconds", [0.2, 3600])
async def test_a_server_that_is_silent_after_the_login_blocks_no_caller(
    connect_seconds: float,
) -> None:
    async with migrated_database() as url, _silent_after_login(url) as (proxy, cut):
        engine = await Postgres.open(
            proxy, allow_unsafe=True, max_connections=2, connect_timeout_seconds=connect_seconds
        )
        cut()
        call = asyncio.create_task(engine.ping())
        if connect_seconds < 1:
            with pytest.raises(UnavailableError):
                await call
        else:
            await asyncio.wait([call], timeout=0.5)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
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
