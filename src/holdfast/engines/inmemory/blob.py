"""Blobs in memory: the bytes in a dict, their metadata in the index."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from copy import copy
from dataclasses import dataclass, field
from typing import Self

from holdfast.engines.inmemory.blob_index import InMemoryBlobIndex
from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.blob_index import RETRY_SECONDS, BlobFacts
from holdfast.spi.blobs import BlobRange, BlobStorage, end_of
from holdfast.values.blobs import BlobInfo

_SWEEP_BLOBS = 100


@dataclass
class BlobBytes:
    """The bytes of one tenant's blobs, by object key.

    >>> BlobBytes().objects
    {}
    """

    objects: dict[str, bytes] = field(default_factory=dict)


class InMemoryBlobs(BlobStorage):
    """Stores blobs in dicts.

    Awaiting the in-memory index never switches to another asyncio task: it does not suspend.

    >>> blobs = InMemoryBlobs(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._index = InMemoryBlobIndex(engine, tenant=tenant)
        self._objects = engine.table(tenant, BlobBytes).objects
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
        digest = hashlib.sha256(data).hexdigest()
        facts = BlobFacts(ref, len(data), content_type, digest, self._subject)
        await self._index.put(ref, facts, ttl_seconds)
        self._objects[ref] = data

    async def store_stream(
        self, ref: str, chunks: AsyncIterator[bytes], content_type: str, ttl_seconds: float | None
    ) -> None:
        """Read all chunks, then store them."""
        data = b"".join([chunk async for chunk in chunks])
        await self.store(ref, data, content_type, ttl_seconds)

    async def open(
        self,
        ref: str,
        offset: int,
        length: int | None,
        *,
        whole: bool,  # noqa: ARG002 - all bytes are in memory
    ) -> BlobRange | None:
        """Return a range of a blob."""
        blob = await self._index.get(ref)
        if blob is None:
            return None
        data = self._objects.get(blob.object_key, b"")
        return BlobRange(blob.info, _part(data, offset, end_of(blob.info, offset, length)))

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
        blob = await self._index.take(ref)
        if blob is None:
            return False
        self._objects.pop(blob.object_key, None)
        await self._index.forget([ref])
        return True

    async def sweep(self) -> int:
        """Delete expired blobs. Returns how many."""
        removed = 0
        while taken := await self._index.take_expired(_SWEEP_BLOBS, RETRY_SECONDS):
            for blob in taken:
                self._objects.pop(blob.object_key, None)
            removed += await self._index.forget([blob.ref for blob in taken])
        return removed


async def _part(data: bytes, start: int, end: int) -> AsyncGenerator[bytes, None]:
    if start < end <= len(data):
        yield data[start:end]
