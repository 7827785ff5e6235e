"""Blobs, on Postgres: the bytes in chunks, their metadata in the index."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from copy import copy
from typing import Any, Self

from holdfast.engines.postgres.blob_index import PostgresBlobIndex, info_of
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.blobs import BlobRange, BlobStorage, end_of
from holdfast.values.blobs import MAX_CHUNK_BYTES, BlobInfo

_SQL = load("blob")
_BATCH = 2
"""How many chunks one statement reads or writes, and a stream holds in memory."""

_MAX_NUMBER = (1 << 31) - 1
_SWEEP_BLOBS = 100


class PostgresBlobs(BlobStorage):
    """Stores blobs in two tables: chunks of bytes, and metadata.

    While a stream of more than 2 MiB is stored, it holds a connection and a transaction. A stream
    that is read holds neither.

    ::

        blobs = PostgresBlobs(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant
        self._index = PostgresBlobIndex(engine, tenant=tenant, place="postgres")
        self._subject = ""

    def for_subject(self, subject: str) -> Self:
        """Return a view of the same blobs; blobs that it stores get this subject."""
        other = copy(self)
        vars(other).update(_subject=subject)
        return other

    async def store(
        self, ref: str, data: bytes, content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store bytes."""
        await self.store_stream(ref, _once(data), content_type, ttl_seconds)

    async def store_stream(
        self, ref: str, chunks: AsyncIterator[bytes], content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store chunks."""
        try:
            await self._keep(ref, _cut(chunks), content_type, ttl_seconds)
        except _SourceError as failed:
            raise failed.error from None

    async def open(
        self, ref: str, offset: int, length: int | None, *, whole: bool
    ) -> BlobRange | None:
        """Return a range of a blob, or ``None``; with ``whole``, read all its chunks at once."""
        first = offset // MAX_CHUNK_BYTES
        last = _MAX_NUMBER if whole else first + (0 if length == 0 else _BATCH - 1)
        args = (self._tenant, ref, min(first, _MAX_NUMBER), min(last, _MAX_NUMBER))
        rows = await self._engine.fetch(_SQL["open"], *args, safe=True)
        if not rows:
            return None
        info = info_of(rows[0])
        stored = {row["number"]: row["data"] for row in rows}
        return BlobRange(info, self._parts(ref, stored, offset, end_of(info, offset, length)))

    async def stat(self, ref: str) -> BlobInfo | None:
        """Return the metadata of a blob."""
        blob = await self._index.get(ref)
        return blob.info if blob else None

    async def pin(self, ref: str) -> bool:
        """Remove the time to live of a blob. Returns whether the blob exists."""
        return await self._index.pin(ref)

    async def unpin(self, ref: str, ttl_seconds: float) -> bool:
        """Set the time to live of a blob, from now. Returns whether the blob exists."""
        return await self._index.unpin(ref, ttl_seconds)

    async def delete(self, ref: str) -> bool:
        """Delete a blob."""
        count: int = await self._engine.fetchval(_SQL["delete"], self._tenant, ref, safe=False)
        return count > 0

    async def sweep(self) -> int:
        """Delete expired blobs. Returns how many."""
        removed = 0
        while count := await self._engine.fetchval(
            _SQL["sweep"], self._tenant, _SWEEP_BLOBS, safe=False
        ):
            removed += count
        return removed

    async def _keep(
        self, ref: str, pieces: AsyncIterator[bytes], content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store a small blob in one statement, a large one in several, in one transaction."""
        digest, size, number = hashlib.sha256(), 0, 0
        batch: list[bytes] = []
        connection: Any = None
        limit = self._engine.command_timeout_seconds
        async with AsyncExitStack() as held:
            async for piece in pieces:
                if len(batch) == _BATCH:
                    if connection is None:
                        await held.enter_async_context(self._engine.singleton(_Uploads).turns)
                        lent = self._engine.connection(writes=True, tenant=self._tenant)
                        connection = await held.enter_async_context(lent)
                        await held.enter_async_context(connection.transaction())
                    await connection.execute(
                        *(_SQL["append"], self._tenant, ref, number, batch), timeout=limit
                    )
                    number += len(batch)
                    batch = []
                batch.append(piece)
                digest.update(piece)
                size += len(piece)
            facts = (size, content_type, digest.hexdigest(), ttl_seconds)
            args = (self._tenant, ref, *facts, number, batch, self._subject)
            if connection is None:
                await self._engine.fetch(_SQL["store"], *args, safe=True)
            else:
                await connection.execute(_SQL["store"], *args, timeout=limit)

    async def _parts(
        self, ref: str, stored: dict[int, bytes], at: int, end: int
    ) -> AsyncGenerator[bytes, None]:
        number, start = divmod(at, MAX_CHUNK_BYTES)
        while number * MAX_CHUNK_BYTES + start < end:
            if not stored:
                last = min(number + _BATCH, -(-end // MAX_CHUNK_BYTES)) - 1
                stored = await self._read(ref, number, last)
            data = stored.pop(number, b"")
            stop = min(MAX_CHUNK_BYTES, end - number * MAX_CHUNK_BYTES)
            if len(data) < stop:
                return
            yield data[start:stop]
            number, start = number + 1, 0

    async def _read(self, ref: str, first: int, last: int) -> dict[int, bytes]:
        rows = await self._engine.fetch(_SQL["chunks"], self._tenant, ref, first, last, safe=True)
        return {row["number"]: row["data"] for row in rows}


class _Uploads:
    """Limits the connections that streams hold to less than half of the pool.

    A stream's source may need a connection too, as when a blob is copied; if streams held all
    connections, they would deadlock.
    """

    def __init__(self, engine: Postgres) -> None:
        self.turns = asyncio.Semaphore(max(1, (engine.max_connections - 1) // 2))

    async def aclose(self) -> None:
        """Do nothing: each stream releases its own permit."""


class _SourceError(Exception):
    """Wraps an error of the caller's stream, so that the engine does not map it to its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _cut(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split chunks of any size into chunks of 1 MiB; the last one may be shorter."""
    rest = bytearray()
    while True:
        try:
            chunk = await anext(chunks)
        except StopAsyncIteration:
            break
        except Exception as error:
            raise _SourceError(error) from error
        left = memoryview(chunk)
        while len(rest) + len(left) >= MAX_CHUNK_BYTES:
            taken = MAX_CHUNK_BYTES - len(rest)
            rest += left[:taken]
            left = left[taken:]
            yield bytes(rest)
            rest.clear()
        rest += left
    if rest:
        yield bytes(rest)
