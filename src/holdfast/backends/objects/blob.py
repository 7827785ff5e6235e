"""Blobs, on an object store: the bytes in objects, what is known about them in an index."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import aclosing, suppress
from datetime import timedelta
from io import BytesIO
from itertools import islice
from typing import Any, TypeAlias

from holdfast.backends.objects.engine import Found, Objects
from holdfast.backends.objects.paths import Paths, part_bytes
from holdfast.backends.objects.upload import Upload, hash_more
from holdfast.kernel.core.checks import check_count, check_id, check_optional_count, check_seconds
from holdfast.kernel.core.errors import ConflictError, HoldfastError, NotFoundError
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
from holdfast.kernel.storage.blob_index import BlobIndex, IndexedBlob

ORPHAN_GRACE_SECONDS = 86_400
"""How old bytes without a ref must be before they are removed: more than an upload takes."""

_SWEEP_BLOBS = 1000
_WHOLE_AHEAD, _STREAM_AHEAD = 3, 1
"""How many parts are fetched ahead: of a blob that is held in memory anyway, and of a stream."""

_Fetch: TypeAlias = tuple[int, int, asyncio.Task[Any]]
"""From where to where in a part, and the request for it."""


class ObjectBlobs(Blobs):
    """``Blobs`` in objects; ``index`` keeps the refs, in a database or beside the bytes.

    The bytes are uploaded first, then the ref is put: a crash at any line leaves no ref, or a good
    one. Bytes without a ref are removed by ``sweep_orphans``.

    ::

        blobs = ObjectBlobs(engine, PostgresBlobIndex(postgres, tenant="acme"), tenant="acme")
    """

    def __init__(
        self,
        engine: Objects,
        index: BlobIndex,
        *,
        tenant: str = "default",
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
    ) -> None:
        self._engine = engine
        self._index = index
        self._tenant = tenant
        self._paths = Paths(tenant)
        self._ttl_seconds = ttl_seconds
        self._named = self._paths.name is None

    async def store(
        self, data: bytes | str, *, content_type: str = "application/octet-stream"
    ) -> str:
        """Keep bytes, or text as UTF-8."""
        data = check_data(data)
        self._check(content_type)
        upload = Upload(self._engine, self._paths)
        try:
            await self._name_tenant()
            await upload.store(data)
        except BaseException:
            await self._discard(upload)
            raise
        return await self._refer(upload, content_type)

    async def resolve(self, ref: str) -> bytes:
        """The bytes."""
        blob = await self._find(ref)
        # Copied while the next parts are on their way; what it holds is handed out without a copy.
        whole = BytesIO()
        async for part in self._parts(blob, 0, blob.info.size_bytes, ahead=_WHOLE_AHEAD):
            whole.write(part)
        return whole.getvalue()

    async def pin(self, ref: str) -> None:
        """Keep a blob until it is unpinned or deleted."""
        await self._index.pin(ref)

    async def unpin(self, ref: str) -> None:
        """Let a blob expire again."""
        await self._index.unpin(ref, ttl_seconds=self._ttl_seconds)

    async def stat(self, ref: str) -> BlobInfo:
        """What is known about a blob."""
        return (await self._find(ref)).info

    async def delete(self, ref: str) -> bool:
        """Remove a blob."""
        blob = await self._index.take(ref)
        if blob is None:
            return False
        await self._remove([blob])
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
        self._check(content_type)
        upload = Upload(self._engine, self._paths)
        count = 0
        try:
            await self._name_tenant()
            async for chunk in chunks:
                await upload.add(check_chunk(count, chunk))
                count += 1
            await upload.finish()
        except BaseException:
            await self._discard(upload)
            raise
        return await self._refer(upload, content_type)

    async def sweep(self) -> int:
        """Free the space of expired blobs."""
        removed = 0
        while taken := await self._index.take_expired(_SWEEP_BLOBS):
            removed += await self._remove(taken)
        return removed

    async def sweep_orphans(self, *, grace_seconds: float = ORPHAN_GRACE_SECONDS) -> int:
        """Remove bytes that no ref uses and that are older than the grace; how many objects.

        They are what a crash left between an upload and its ref. The index decides about each, so
        that an upload which takes longer than the grace fails loudly when it asks for its ref, and
        no ref ever loses its bytes. It lists all objects of the tenant: once a day is often enough.
        May stop at any line and run again, also beside others.

        ::

            removed = await blobs.sweep_orphans()
        """
        before = self._engine.now() - timedelta(
            seconds=check_seconds("grace_seconds", grace_seconds)
        )
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

    def _check(self, content_type: str) -> None:
        check_content_type(content_type)
        check_seconds("ttl_seconds", self._ttl_seconds)

    async def _name_tenant(self) -> None:
        """Keep the name of a tenant whose folder does not say it, so that all can be swept."""
        if not self._named and self._paths.name:
            await self._engine.put(self._paths.name, self._tenant.encode("utf-8", "surrogatepass"))
            self._named = True

    async def _refer(self, upload: Upload, content_type: str) -> str:
        """Make the ref. Where it is unknown whether there is one, its bytes stay for the sweep."""
        ref = new_ref()
        try:
            await self._index.put(
                ref,
                upload.key,
                size_bytes=upload.size_bytes,
                content_type=content_type,
                sha256=upload.sha256,
                ttl_seconds=self._ttl_seconds,
            )
        except ConflictError:
            await self._discard(upload)
            raise
        return ref

    async def _discard(self, upload: Upload) -> None:
        """Remove what came so far; where that fails too, the first error counts and the sweep."""
        with suppress(HoldfastError):
            await self._engine.to_the_end(upload.discard())

    async def _find(self, ref: str) -> IndexedBlob:
        blob = await self._index.get(ref)
        if blob is None:
            raise NotFoundError("blob", ref)
        return blob

    async def _remove(self, taken: list[IndexedBlob]) -> int:
        """First the bytes, then the refs: what is not forgotten is taken again later."""
        await self._engine.delete(
            [
                path
                for blob in taken
                for path in self._paths.parts(blob.object_key, blob.info.size_bytes)
            ]
        )
        return await self._index.forget([blob.ref for blob in taken])

    async def _chunks(
        self, ref: str, offset: int, length: int | None
    ) -> AsyncGenerator[bytes, None]:
        blob = await self._find(ref)
        size = blob.info.size_bytes
        end = size if length is None else min(size, offset + length)
        async with aclosing(self._parts(blob, offset, end, ahead=_STREAM_AHEAD)) as parts:
            async for part in parts:
                view = memoryview(part)
                for at in range(0, len(view), MAX_CHUNK_BYTES):
                    yield bytes(view[at : at + MAX_CHUNK_BYTES])

    async def _parts(
        self, blob: IndexedBlob, start: int, end: int, *, ahead: int
    ) -> AsyncGenerator[Any, None]:
        """Buffers of a range, in order; the last of a whole blob only if the digest is right."""
        whole = start == 0 and end == blob.info.size_bytes
        wanted = _wanted(part_bytes(blob.object_key), start, end)
        fetching: deque[_Fetch] = deque()
        digest, hashing = hashlib.sha256(), None
        try:
            self._fetch(blob.object_key, islice(wanted, ahead + 1), fetching)
            while fetching:
                low, high, reading = fetching[0]
                data = await reading
                fetching.popleft()
                self._fetch(blob.object_key, islice(wanted, 1), fetching)
                if len(data) < high - low:
                    # Removed while it was read, or damaged.
                    await self._find(blob.ref)
                check_reach(blob.ref, has_bytes=low + len(data), needs_bytes=high)
                if whole:
                    if hashing:
                        await hashing
                    hashing = asyncio.create_task(hash_more(digest, data))
                    if not fetching:
                        await hashing
                        check_digest(blob.ref, blob.info, digest.hexdigest())
                yield data
        finally:
            for *_, reading in fetching:
                reading.cancel()

    def _fetch(
        self, key: str, wanted: Iterator[tuple[int, int, int]], fetching: deque[_Fetch]
    ) -> None:
        for number, low, high in wanted:
            reading = self._engine.read(self._paths.part(key, number), low, high)
            fetching.append((low, high, asyncio.create_task(reading)))


def _wanted(part: int, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Which parts a range reaches into, and from where to where in each."""
    for number in range(start // part, -(-end // part) if start < end else 0):
        yield number, max(0, start - number * part), min(part, end - number * part)


def _key(found: Found) -> str:
    """The object key of a part."""
    return found.path.rpartition("/")[2].rpartition(".")[0]
