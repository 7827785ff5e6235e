"""Blobs, on an object store: the bytes in objects, their metadata in an index."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from copy import copy
from datetime import timedelta
from itertools import islice
from typing import Any, Self, TypeAlias

from holdfast.engines.objects.engine import Found, Objects
from holdfast.engines.objects.paths import Paths, part_bytes
from holdfast.engines.objects.upload import Upload
from holdfast.spi.blob_index import RETRY_SECONDS, BlobFacts, BlobIndexStorage
from holdfast.spi.blobs import BlobRange, BlobStorage, end_of
from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.errors import ConflictError, HoldfastError

ORPHAN_GRACE_SECONDS = 86_400
"""The age at which bytes without a ref are deleted: longer than an upload takes."""

_SWEEP_BLOBS = 1000
_WHOLE_AHEAD, _STREAM_AHEAD = 3, 1
"""How many parts are prefetched: of a blob that is read into memory, and of a stream."""

_Fetch: TypeAlias = tuple[int, asyncio.Task[Any]]
"""How many bytes of a part are needed, and the request for them."""


class ObjectBlobs(BlobStorage):
    """Stores blobs in objects; ``index`` stores the refs, in a database or next to the bytes.

    The bytes are uploaded first, then the ref is stored: a crash at any line leaves either no ref
    or a valid one. ``sweep_orphans`` deletes bytes without a ref.

    ::

        blobs = ObjectBlobs(engine, PostgresBlobIndex(postgres, tenant="acme"), tenant="acme")
    """

    def __init__(
        self, engine: Objects, index: BlobIndexStorage, *, tenant: str = "default"
    ) -> None:
        self._engine = engine
        self._index = index
        self._tenant = tenant
        self._paths = Paths(tenant)
        self._named = self._paths.name is None
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
        async with self._upload() as upload:
            await upload.store(data)
        await self._refer(ref, upload, content_type, ttl_seconds)

    async def store_stream(
        self, ref: str, chunks: AsyncIterator[bytes], content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store chunks."""
        async with self._upload() as upload:
            async for chunk in chunks:
                await upload.add(chunk)
            await upload.finish()
        await self._refer(ref, upload, content_type, ttl_seconds)

    async def open(
        self, ref: str, offset: int, length: int | None, *, whole: bool
    ) -> BlobRange | None:
        """Return a range of a blob, or ``None``."""
        blob = await self._index.get(ref)
        if blob is None:
            return None
        end, ahead = end_of(blob.info, offset, length), _WHOLE_AHEAD if whole else _STREAM_AHEAD
        return BlobRange(blob.info, self._parts(blob.object_key, offset, end, ahead))

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
        """Delete a blob. Returns whether it existed."""
        blob = await self._index.take(ref)
        if blob is None:
            return False
        await self._remove([blob])
        return True

    async def sweep(self) -> int:
        """Delete expired blobs. Returns how many."""
        removed = 0
        while taken := await self._index.take_expired(_SWEEP_BLOBS, RETRY_SECONDS):
            removed += await self._remove(taken)
        return removed

    async def sweep_orphans(self, *, grace_seconds: float = ORPHAN_GRACE_SECONDS) -> int:
        """Delete objects that no ref uses and that are older than the grace. Returns how many.

        A crash between an upload and its ref leaves them behind. The index decides about each, so
        that an upload that takes longer than the grace raises an error when it puts its ref, and
        no ref ever loses its bytes. It lists all objects of the tenant: once a day is often enough.
        It may stop at any line and run again, also concurrently.

        ::

            removed = await blobs.sweep_orphans()
        """
        before = self._engine.now() - timedelta(seconds=grace_seconds)
        removed = 0
        async for page in self._engine.pages(self._paths.bytes):
            old: dict[str, list[str]] = {}
            for found in page:
                if found.modified_at <= before:
                    old.setdefault(_key(found), []).append(found.path)
            unused = await self._index.condemn(list(old)) if old else []
            paths = [path for key in unused for path in old[key]]
            await self._engine.delete(paths)
            removed += len(paths)
        if self._engine.disk:
            removed += await self._engine.disk.remove_staged(self._paths.root, before=before)
        return removed

    @asynccontextmanager
    async def _upload(self) -> AsyncIterator[Upload]:
        """Yield a new upload; if it fails, delete the uploaded bytes."""
        upload = Upload(self._engine, self._paths)
        try:
            await self._name_tenant()
            yield upload
        except BaseException:
            await self._discard(upload)
            raise

    async def _name_tenant(self) -> None:
        """Store the tenant's name if its folder is named by a digest: maintenance reads it."""
        if not self._named and self._paths.name:
            await self._engine.put(self._paths.name, self._tenant.encode("utf-8", "surrogatepass"))
            self._named = True

    async def _refer(
        self, ref: str, upload: Upload, content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store the ref. If it is unknown whether that succeeded, leave the bytes to the sweep."""
        stored = (upload.key, upload.size_bytes, content_type, upload.sha256)
        facts = BlobFacts(*stored, self._subject)
        try:
            await self._index.put(ref, facts, ttl_seconds)
        except ConflictError:
            await self._discard(upload)
            raise

    async def _discard(self, upload: Upload) -> None:
        """Delete the uploaded bytes. If that fails, leave them to the sweep and raise nothing."""
        with suppress(HoldfastError):
            await self._engine.to_the_end(upload.discard())

    async def _remove(self, taken: list[IndexedBlob]) -> int:
        """Delete the bytes, then the refs: if a ref is left, a later sweep deletes its blob."""
        await self._engine.delete(
            [
                path
                for blob in taken
                for path in self._paths.parts(blob.object_key, blob.info.size_bytes)
            ]
        )
        return await self._index.forget([blob.ref for blob in taken])

    async def _parts(self, key: str, start: int, end: int, ahead: int) -> AsyncGenerator[Any, None]:
        wanted = _wanted(part_bytes(key), start, end)
        fetching: deque[_Fetch] = deque()
        try:
            self._fetch(key, islice(wanted, ahead + 1), fetching)
            while fetching:
                length, reading = fetching[0]
                data = await reading
                fetching.popleft()
                self._fetch(key, islice(wanted, 1), fetching)
                if len(data) < length:
                    return
                yield data
        finally:
            for _, reading in fetching:
                reading.cancel()

    def _fetch(
        self, key: str, wanted: Iterator[tuple[int, int, int]], fetching: deque[_Fetch]
    ) -> None:
        for number, low, high in wanted:
            reading = self._engine.read(self._paths.part(key, number), low, high)
            fetching.append((high - low, asyncio.create_task(reading)))


def _wanted(part: int, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts that a range covers, with the start and end within each."""
    for number in range(start // part, -(-end // part) if start < end else 0):
        yield number, max(0, start - number * part), min(part, end - number * part)


def _key(found: Found) -> str:
    """Return the object key of a part."""
    return found.path.rpartition("/")[2].rpartition(".")[0]
