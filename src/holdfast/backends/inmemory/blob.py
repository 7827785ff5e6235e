"""Blobs, in process: the bytes in a dict, what is known about them in the index."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass, field

from holdfast.backends.inmemory.blob_index import InMemoryBlobIndex
from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_count, check_id, check_optional_count
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


@dataclass
class BlobBytes:
    """The bytes of one tenant's blobs, by object key.

    >>> BlobBytes().objects
    {}
    """

    objects: dict[str, bytes] = field(default_factory=dict)


class InMemoryBlobs(Blobs):
    """``Blobs`` in dicts; ``ttl_seconds`` is how long a blob lives that nobody pins.

    >>> blobs = InMemoryBlobs(InMemory(), tenant="acme", ttl_seconds=3600)
    """

    def __init__(
        self,
        engine: InMemory,
        *,
        tenant: str = "default",
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
    ) -> None:
        self._index = InMemoryBlobIndex(engine, tenant=tenant)
        self._objects = engine.table(tenant, BlobBytes).objects
        self._ttl_seconds = ttl_seconds

    async def store(
        self, data: bytes | str, *, content_type: str = "application/octet-stream"
    ) -> str:
        """Keep bytes, or text as UTF-8."""
        return await self._keep(check_data(data), content_type)

    async def resolve(self, ref: str) -> bytes:
        """The bytes."""
        info, data = await self._find(ref)
        return _checked(ref, info, data)

    async def pin(self, ref: str) -> None:
        """Keep a blob until it is unpinned or deleted."""
        await self._index.pin(ref)

    async def unpin(self, ref: str) -> None:
        """Let a blob expire again."""
        await self._index.unpin(ref, ttl_seconds=self._ttl_seconds)

    async def stat(self, ref: str) -> BlobInfo:
        """What is known about a blob."""
        return (await self._find(ref))[0]

    async def delete(self, ref: str) -> bool:
        """Remove a blob."""
        blob = await self._index.take(ref)
        if blob is None:
            return False
        self._objects.pop(blob.object_key, None)
        await self._index.forget([ref])
        return True

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
        came: list[bytes] = []
        async for chunk in chunks:
            came.append(check_chunk(len(came), chunk))
        return await self._keep(b"".join(came), content_type)

    async def sweep(self) -> int:
        """Free the space of expired blobs."""
        removed = 0
        while taken := await self._index.take_expired():
            for blob in taken:
                self._objects.pop(blob.object_key, None)
            removed += await self._index.forget([blob.ref for blob in taken])
        return removed

    # Awaiting the index never gives way to another task: its coroutines do not wait for anything.

    async def _keep(self, data: bytes, content_type: str) -> str:
        ref = new_ref()
        await self._index.put(
            ref,
            ref,
            size_bytes=len(data),
            content_type=content_type,
            sha256=hashlib.sha256(data).hexdigest(),
            ttl_seconds=self._ttl_seconds,
        )
        self._objects[ref] = data
        return ref

    async def _find(self, ref: str) -> tuple[BlobInfo, bytes]:
        blob = await self._index.get(ref)
        if blob is None:
            raise NotFoundError("blob", ref)
        return blob.info, self._objects.get(blob.object_key, b"")

    async def _chunks(
        self, ref: str, offset: int, length: int | None
    ) -> AsyncGenerator[bytes, None]:
        info, data = await self._find(ref)
        end = info.size_bytes if length is None else min(info.size_bytes, offset + length)
        if offset == 0 and end == info.size_bytes:
            _checked(ref, info, data)
        elif offset < end:
            check_reach(ref, has_bytes=len(data), needs_bytes=end)
        for at in range(offset, end, MAX_CHUNK_BYTES):
            yield data[at : min(at + MAX_CHUNK_BYTES, end)]


def _checked(ref: str, info: BlobInfo, data: bytes) -> bytes:
    check_digest(ref, info, hashlib.sha256(data).hexdigest())
    return data
