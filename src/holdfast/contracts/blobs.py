"""Blobs, as agents use them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from io import BytesIO
from typing import Any

from holdfast.contracts.front import Front
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
from holdfast.spi.blobs import BlobStorage, end_of, hash_more
from holdfast.values.checks import check_count, check_id, check_optional_count, check_seconds
from holdfast.values.errors import NotFoundError, NotSupportedError
from holdfast.values.ids import new_ref


class StoredBlobs(Front, Blobs):
    """``Blobs`` on any engine; ``ttl_seconds`` is how long a blob lives that nobody pins.

    A ref does not show who stored it, and may have been given to others. So an owner can store,
    read and pin, and cannot unpin, delete or sweep.

    ::

        blobs = StoredBlobs(PostgresBlobs(engine, tenant="acme"), ttl_seconds=3600)
    """

    def __init__(self, storage: BlobStorage, *, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> None:
        self._storage = storage
        self._ttl_seconds = ttl_seconds

    async def store(
        self, data: bytes | str, *, content_type: str = "application/octet-stream"
    ) -> str:
        """Keep bytes, or text as UTF-8."""
        ref, given = new_ref(), check_data(data)
        await self._storage.store(ref, given, *self._kept_as(content_type))
        return ref

    async def resolve(self, ref: str) -> bytes:
        """The bytes."""
        # Copied while the next parts are on their way; what it holds is handed out without a copy.
        data = BytesIO()
        async for part in self._parts(check_id("ref", ref), 0, None, whole=True):
            data.write(part)
        return data.getvalue()

    async def pin(self, ref: str) -> None:
        """Keep a blob until it is unpinned or deleted."""
        if not await self._storage.pin(check_id("ref", ref)):
            raise NotFoundError("blob", ref)

    async def unpin(self, ref: str) -> None:
        """Let a blob expire again."""
        window = check_seconds("ttl_seconds", self._ttl_seconds)
        check_id("ref", ref)
        self._refuse_owner("unpin")
        if not await self._storage.unpin(ref, window):
            raise NotFoundError("blob", ref)

    async def stat(self, ref: str) -> BlobInfo:
        """What is known about a blob."""
        info = await self._storage.stat(check_id("ref", ref))
        if info is None:
            raise NotFoundError("blob", ref)
        return info

    async def delete(self, ref: str) -> bool:
        """Remove a blob."""
        check_id("ref", ref)
        self._refuse_owner("delete")
        return await self._storage.delete(ref)

    def open(
        self, ref: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The bytes in chunks."""
        check_optional_count("length", length)
        return self._chunks(check_id("ref", ref), check_count("offset", offset), length)

    async def store_stream(
        self, chunks: AsyncIterable[bytes], *, content_type: str = "application/octet-stream"
    ) -> str:
        """Keep bytes that come in chunks."""
        ref, kept_as = new_ref(), self._kept_as(content_type)
        async with aclosing(_checked(chunks)) as checked:
            await self._storage.store_stream(ref, checked, *kept_as)
        return ref

    async def sweep(self) -> int:
        """Free the space of expired blobs."""
        self._refuse_owner("sweep")
        return await self._storage.sweep()

    def _refuse_owner(self, name: str) -> None:
        if self._scope.owner:
            raise NotSupportedError(
                "blob",
                f"blobs.{name} for one owner",
                why="blobs are not divided by owner: "
                f"call blobs.{name} of the state that the view was made of",
            )

    def _kept_as(self, content_type: str) -> tuple[str, float]:
        window = check_seconds("ttl_seconds", self._ttl_seconds)
        return check_content_type(content_type), window

    async def _chunks(
        self, ref: str, offset: int, length: int | None
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._parts(ref, offset, length, whole=False)) as parts:
            async for part in parts:
                view = memoryview(part)
                for at in range(0, len(view), MAX_CHUNK_BYTES):
                    yield bytes(view[at : at + MAX_CHUNK_BYTES])

    async def _parts(
        self, ref: str, offset: int, length: int | None, *, whole: bool
    ) -> AsyncGenerator[Any, None]:
        """Buffers of a range; the last one of all the bytes only if their digest is right."""
        found = await self._storage.open(ref, offset, length, whole=whole)
        if found is None:
            raise NotFoundError("blob", ref)
        info, at, end = found.info, offset, end_of(found.info, offset, length)
        everything = offset == 0 and end == info.size_bytes
        digest, hashing = hashlib.sha256(), None
        async with aclosing(found.parts) as parts:
            async for part in parts:
                at += len(part)
                if everything:
                    if hashing:
                        await hashing
                    hashing = asyncio.create_task(hash_more(digest, part))
                    if at == end:
                        await hashing
                        check_digest(ref, info, digest.hexdigest())
                yield part
        if at < end:
            # Removed while it was read, or damaged.
            await self.stat(ref)
            check_reach(ref, has_bytes=at, needs_bytes=end)


async def _checked(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    count = 0
    async for chunk in chunks:
        yield check_chunk(count, chunk)
        count += 1
