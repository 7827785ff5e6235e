"""The archive of a tenant whose blobs have their bytes in an object store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Protocol, Self, runtime_checkable

from holdfast.spi.archive.records import BlobRecord, Record
from holdfast.spi.archive.storage import ArchiveSnapshot, ArchiveStorage
from holdfast.spi.blobs import BlobStorage
from holdfast.values.errors import NotFoundError, NotSupportedError


@runtime_checkable
class _IndexArchive(Protocol):
    """An archive whose engine can store the index of blobs of an object store."""

    def for_objects(self) -> Self: ...

    async def date_blob(self, record: BlobRecord) -> None: ...


def with_objects(archive: ArchiveStorage, blobs: BlobStorage) -> ArchiveStorage:
    """Return an archive that reads and writes the bytes of blobs in an object store.

    ::

        storage = with_objects(archive, ObjectBlobs(engine, index, tenant="acme"))
    """
    if not isinstance(archive, _IndexArchive):
        raise NotSupportedError("objects", "archives of blobs", why="keep their index in Postgres")
    return ObjectsArchive(archive.for_objects(), archive.for_objects(), blobs)


class _Snapshot(ArchiveSnapshot):
    def __init__(self, snapshot: ArchiveSnapshot, blobs: BlobStorage) -> None:
        self._snapshot = snapshot
        self._blobs = blobs
        self.at: datetime = snapshot.at

    def records(self, kind: str) -> AsyncGenerator[Record, None]:
        return self._snapshot.records(kind)

    async def blob(self, ref: str) -> AsyncGenerator[bytes, None]:
        found = await self._blobs.open(ref, 0, None, whole=False)
        if found is None:
            # Deleted or expired after the snapshot began.
            raise NotFoundError("blob", ref)
        async for part in found.parts:
            yield bytes(part)


class ObjectsArchive(ArchiveStorage):
    """``ArchiveStorage`` over two engines: one for the bytes of blobs, one for all else.

    ::

        storage = ObjectsArchive(archive, index, blobs)
    """

    def __init__(self, archive: ArchiveStorage, index: _IndexArchive, blobs: BlobStorage) -> None:
        self._archive = archive
        self._index = index
        self._blobs = blobs
        self.kinds = archive.kinds

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[ArchiveSnapshot]:
        """Open a snapshot. Blobs are read from the object store: their bytes never change."""
        async with self._archive.snapshot() as snapshot:
            yield _Snapshot(snapshot, self._blobs)

    async def load(self, kind: str, records: Sequence[Record]) -> None:
        """Store records."""
        await self._archive.load(kind, records)

    async def load_blob(self, record: BlobRecord, chunks: AsyncIterator[bytes]) -> None:
        """Upload the bytes unless the ref exists, store the ref, then set its times."""
        if await self._blobs.stat(record.ref) is None:
            blobs = self._blobs.for_subject(record.subject)
            await blobs.store_stream(record.ref, chunks, record.content_type, None)
        await self._index.date_blob(record)

    async def begin_import(self, archive: str) -> frozenset[str] | None:
        """Start or continue an import."""
        return await self._archive.begin_import(archive)

    async def segment_loaded(self, archive: str, segment: str) -> None:
        """Record that a segment is loaded."""
        await self._archive.segment_loaded(archive, segment)

    async def finish_import(self, archive: str) -> None:
        """Record that the whole archive is loaded."""
        await self._archive.finish_import(archive)
