"""Blobs, on Postgres: the bytes in chunks, what is known about them in the index."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

from holdfast.backends.postgres.blob_index import PostgresBlobIndex, info_of
from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
)
from holdfast.kernel.core.errors import NotFoundError
from holdfast.kernel.core.ids import new_ref
from holdfast.kernel.storage.blob import (
    DEFAULT_TTL_SECONDS,
    MAX_CHUNK_BYTES,
    BlobInfo,
    Blobs,
    check_chunk,
    check_content_type,
    check_data,
    check_digest,
    check_reach,
)

_SQL = load("blob")
_BATCH = 2
"""How many chunks travel in one statement: what a stream holds in memory, either way."""

_MAX_NUMBER = (1 << 31) - 1
_SWEEP_BLOBS = 100


class PostgresBlobs(Blobs):
    """``Blobs`` in two tables; ``ttl_seconds`` is how long a blob lives that nobody pins.

    While a stream of more than 2 MiB is stored, it holds a connection and a transaction. A stream
    that is read holds neither.

    ::

        blobs = PostgresBlobs(engine, tenant="acme", ttl_seconds=3600)
    """

    def __init__(
        self,
        engine: Postgres,
        *,
        tenant: str = "default",
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._index = PostgresBlobIndex(engine, tenant=tenant, place="postgres")
        self._ttl_seconds = ttl_seconds

    async def store(
        self, data: bytes | str, *, content_type: str = "application/octet-stream"
    ) -> str:
        """Keep bytes, or text as UTF-8."""
        return await self.store_stream(_once(check_data(data)), content_type=content_type)

    async def resolve(self, ref: str) -> bytes:
        """The bytes."""
        check_id("ref", ref)
        rows = await self._open(ref, 0, _MAX_NUMBER)
        data = b"".join(row["data"] for row in rows if row["data"] is not None)
        check_digest(ref, info_of(rows[0]), hashlib.sha256(data).hexdigest())
        return data

    async def pin(self, ref: str) -> None:
        """Keep a blob until it is unpinned or deleted."""
        await self._index.pin(ref)

    async def unpin(self, ref: str) -> None:
        """Let a blob expire again."""
        await self._index.unpin(ref, ttl_seconds=self._ttl_seconds)

    async def stat(self, ref: str) -> BlobInfo:
        """What is known about a blob."""
        blob = await self._index.get(ref)
        if blob is None:
            raise NotFoundError("blob", ref)
        return blob.info

    async def delete(self, ref: str) -> bool:
        """Remove a blob."""
        check_id("ref", ref)
        count: int = await self._engine.fetchval(_SQL["delete"], self._tenant, ref, safe=False)
        return count > 0

    def open(
        self, ref: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The bytes in chunks."""
        check_id("ref", ref)
        check_count("offset", offset)
        check_optional_count("length", length)
        return self._chunks(ref, offset, length)

    async def store_stream(
        self,
        chunks: AsyncIterable[bytes],
        *,
        content_type: str = "application/octet-stream",
    ) -> str:
        """Keep bytes that come in chunks."""
        check_content_type(content_type)
        check_seconds("ttl_seconds", self._ttl_seconds)
        try:
            return await self._keep(_cut(chunks), content_type)
        except _SourceError as failed:
            raise failed.error from None

    async def sweep(self) -> int:
        """Free the space of expired blobs."""
        removed = 0
        while count := await self._engine.fetchval(
            _SQL["sweep"], self._tenant, _SWEEP_BLOBS, safe=False
        ):
            removed += count
        return removed

    async def _keep(self, pieces: AsyncIterator[bytes], content_type: str) -> str:
        """One statement for a small blob; for a large one several, in one transaction."""
        ref, digest, size, number = new_ref(), hashlib.sha256(), 0, 0
        batch: list[bytes] = []
        connection: Any = None
        limit = self._engine.command_timeout_seconds
        async with AsyncExitStack() as held:
            async for piece in pieces:
                if len(batch) == _BATCH:
                    if connection is None:
                        await held.enter_async_context(self._engine.part(_Uploads).turns)
                        lent = self._engine.connection(writes=True)
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
            facts = (size, content_type, digest.hexdigest(), self._ttl_seconds)
            args = (self._tenant, ref, *facts, number, batch)
            if connection is None:
                await self._engine.fetch(_SQL["store"], *args, safe=True)
            else:
                await connection.execute(_SQL["store"], *args, timeout=limit)
        return ref

    async def _chunks(
        self, ref: str, offset: int, length: int | None
    ) -> AsyncGenerator[bytes, None]:
        number, start = divmod(offset, MAX_CHUNK_BYTES)
        rows = await self._open(ref, number, number + _BATCH - 1 if length != 0 else number)
        info = info_of(rows[0])
        end = info.size_bytes if length is None else min(info.size_bytes, offset + length)
        whole = offset == 0 and end == info.size_bytes
        digest, at = hashlib.sha256(), offset
        stored = {row["number"]: row["data"] for row in rows}
        while at < end:
            if not stored:
                last = min(number + _BATCH, -(-end // MAX_CHUNK_BYTES)) - 1
                stored = await self._read(ref, number, last)
            data = stored.pop(number, b"")
            stop = min(MAX_CHUNK_BYTES, end - number * MAX_CHUNK_BYTES)
            if len(data) < stop:
                # Removed while it was read, or damaged.
                await self.stat(ref)
            check_reach(ref, has_bytes=len(data), needs_bytes=stop)
            piece = data[start:stop]
            at += len(piece)
            number, start = number + 1, 0
            if whole:
                digest.update(piece)
                if at == end:
                    check_digest(ref, info, digest.hexdigest())
            yield piece

    async def _open(self, ref: str, first: int, last: int) -> Sequence[Any]:
        rows = await self._engine.fetch(
            _SQL["open"],
            self._tenant,
            ref,
            min(first, _MAX_NUMBER),
            min(last, _MAX_NUMBER),
            safe=True,
        )
        if not rows:
            raise NotFoundError("blob", ref)
        return rows

    async def _read(self, ref: str, first: int, last: int) -> dict[int, bytes]:
        rows = await self._engine.fetch(_SQL["chunks"], self._tenant, ref, first, last, safe=True)
        return {row["number"]: row["data"] for row in rows}


class _Uploads:
    """Who may hold a connection for a stream: less than half of the pool.

    A stream's source may need a connection too, as when a blob is copied; if streams held them
    all, everybody would wait for each other.
    """

    def __init__(self, engine: Postgres) -> None:
        self.turns = asyncio.Semaphore(max(1, (engine.max_connections - 1) // 2))

    async def aclose(self) -> None:
        """Nothing to let go of: whoever has a turn gives it back."""


class _SourceError(Exception):
    """What a stream's source raised, which is not the engine's to translate."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _cut(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Chunks of any size as chunks of 1 MiB, the last one shorter."""
    rest, count = bytearray(), 0
    source = aiter(chunks)
    while True:
        try:
            chunk = await anext(source)
        except StopAsyncIteration:
            break
        except Exception as error:
            raise _SourceError(error) from error
        left = memoryview(check_chunk(count, chunk))
        count += 1
        while len(rest) + len(left) >= MAX_CHUNK_BYTES:
            taken = MAX_CHUNK_BYTES - len(rest)
            rest += left[:taken]
            left = left[taken:]
            yield bytes(rest)
            rest.clear()
        rest += left
    if rest:
        yield bytes(rest)
