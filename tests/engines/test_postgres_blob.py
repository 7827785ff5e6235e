"""Blobs on Postgres that are larger than what is held in memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.postgres.blob import PostgresBlobs
from holdfast.engines.postgres.engine import Postgres
from holdfast.values.errors import NotFoundError
from tests.engines.postgres_database import connected, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

MIB = 1 << 20


async def _source(megabytes: int) -> AsyncIterator[bytes]:
    for n in range(megabytes):
        yield bytes([n % 251]) * MIB


async def test_a_large_blob_passes_both_ways_in_constant_memory() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        blobs = StoredBlobs(PostgresBlobs(engine))
        tracemalloc.start()
        ref = await blobs.store_stream(_source(100))
        count = 0
        async for chunk in blobs.open(ref):
            assert chunk == bytes([count % 251]) * MIB
            count += 1
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await engine.aclose()
    assert count == 100
    assert peak < 32 * MIB


async def test_a_large_blob_is_invisible_until_it_is_whole() -> None:
    async with empty_database() as url, connected(url) as around:
        engine = await Postgres.open(url, auto_migrate=True)
        seen = []

        async def source() -> AsyncIterator[bytes]:
            async for chunk in _source(8):
                yield chunk
                seen.append(await around.fetchval("SELECT count(*) FROM holdfast.blob_chunks"))

        ref = await StoredBlobs(PostgresBlobs(engine)).store_stream(source())
        assert seen == [0] * 8
        assert len(await StoredBlobs(PostgresBlobs(engine)).resolve(ref)) == 8 * MIB
        await engine.aclose()


async def test_the_error_of_a_large_streams_source_is_the_callers_own() -> None:
    class BrokeOffError(ConnectionError):
        """Not ours, and of a kind that the driver raises too."""

    async def failing() -> AsyncIterator[bytes]:
        async for chunk in _source(8):
            yield chunk
        raise BrokeOffError

    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        with pytest.raises(BrokeOffError):
            await StoredBlobs(PostgresBlobs(engine)).store_stream(failing())
        left = "SELECT count(*) FROM holdfast.blob_chunks WHERE tenant = $1"
        assert await engine.fetchval(left, "default", safe=True) == 0
        await engine.aclose()


async def test_copies_of_large_blobs_never_wait_for_each_others_connections() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=2)
        blobs = StoredBlobs(PostgresBlobs(engine))
        ref = await blobs.store_stream(_source(5))
        async with asyncio.timeout(60):
            copies = await asyncio.gather(*(blobs.store_stream(blobs.open(ref)) for _ in range(5)))
        whole = (await blobs.stat(ref)).sha256
        assert {(await blobs.stat(copy)).sha256 for copy in copies} == {whole}
        await engine.aclose()


async def test_a_blob_that_is_deleted_while_it_is_read_is_not_found() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True)
        blobs = StoredBlobs(PostgresBlobs(engine))
        ref = await blobs.store_stream(_source(5))
        stream = blobs.open(ref)
        await anext(stream)
        await blobs.delete(ref)
        with pytest.raises(NotFoundError):
            async for _ in stream:
                pass
        await engine.aclose()
