"""Writes an archive into a folder, one complete segment after the other."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import IO, Self

import msgspec

from holdfast.engines.archive_folder.files import name_whole, write_whole
from holdfast.engines.archive_folder.manifest import (
    MANIFEST,
    SEGMENT_BYTES,
    KindEntry,
    Manifest,
    Segment,
    blob_path,
    read_manifest,
    segment_path,
)
from holdfast.spi.archive.kinds import Kind
from holdfast.spi.archive.records import BlobRecord
from holdfast.values.errors import CodecError, ConflictError, InvalidInputError

LOCK = ".lock"


class ArchiveWriter:
    """The archive that is being written to a folder.

    A segment is written completely, synced and renamed before the manifest names it. An unfinished
    archive is continued: segments and blobs that exist are not written again. ::

        async with ArchiveWriter(Path("backup"), tenant="acme", at=now) as writer:
            await writer.add(kind, line)
            await writer.end_kind(kind)
            await writer.finish()
    """

    def __init__(
        self, folder: Path, *, tenant: str, at: datetime, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._manifest = Manifest(tenant=tenant, created_at=at)
        self._before: dict[str, KindEntry] = {}
        self._lines: list[bytes] = []
        self._bytes = 0
        self._digest = hashlib.sha256()
        self._lock: IO[bytes] | None = None

    @property
    def manifest(self) -> Manifest:
        """The manifest as it is now."""
        return self._manifest

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._open)
        except BaseException:
            self._unlock()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        known = (self._folder / MANIFEST).exists()
        if not known and any(one.name != LOCK for one in self._folder.iterdir()):
            raise InvalidInputError(
                "folder",
                f"{self._folder} has files that are not an archive: choose an empty folder",
            )
        self._lock = (self._folder / LOCK).open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(
                "archive", str(self._folder), f"another process writes to {self._folder}"
            ) from None
        if known:
            before = read_manifest(self._folder)
            if before.tenant != self._manifest.tenant:
                raise InvalidInputError(
                    "folder",
                    f"{self._folder} is an archive of tenant {before.tenant!r}: choose another",
                )
            self._before = before.kinds
        self._save()

    async def add(self, kind: Kind, line: bytes) -> bool:
        """Add a line. Returns whether a segment was written."""
        full = bool(self._lines) and self._bytes + len(line) >= self._segment_bytes
        if full:
            await self._flush(kind)
        self._lines.append(line)
        self._bytes += len(line) + 1
        return full

    async def end_kind(self, kind: Kind) -> None:
        """Write the last segment of a kind, and delete later segments of an earlier archive."""
        entry = self._manifest.kinds.setdefault(kind.name, KindEntry())
        if self._lines:
            await self._flush(kind)
        entry.sha256 = self._digest.hexdigest()
        self._digest = hashlib.sha256()
        await asyncio.to_thread(self._end, kind, len(entry.segments))

    def _end(self, kind: Kind, count: int) -> None:
        self._save()
        number = count + 1
        while (left := segment_path(self._folder, kind, number)).exists():
            left.unlink()
            number += 1

    async def _flush(self, kind: Kind) -> None:
        data = b"\n".join(self._lines) + b"\n"
        count, self._lines, self._bytes = len(self._lines), [], 0
        self._digest.update(data)
        await asyncio.to_thread(self._write, kind, data, count)

    def _write(self, kind: Kind, data: bytes, count: int) -> None:
        entry = self._manifest.kinds.setdefault(kind.name, KindEntry())
        segment = Segment(count, len(data), hashlib.sha256(data).hexdigest())
        number = len(entry.segments) + 1
        path = segment_path(self._folder, kind, number)
        before = self._before.get(kind.name, KindEntry()).segments[number - 1 : number]
        if before != [segment] or not path.exists() or path.stat().st_size != len(data):
            write_whole(path, data)
        entry.segments.append(segment)
        entry.records += count
        self._save()

    async def add_blob(self, record: BlobRecord, chunks: AsyncIterator[bytes]) -> bool:
        """Write the bytes of a blob, unless its file is complete. Returns whether it wrote."""
        path = blob_path(self._folder, record.sha256)
        if path.exists() and path.stat().st_size == record.size_bytes:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        draft, digest = path.with_name(f".{path.name}.draft"), hashlib.sha256()
        with draft.open("wb") as file:
            async for chunk in chunks:
                digest.update(chunk)
                await asyncio.to_thread(file.write, chunk)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        if digest.hexdigest() != record.sha256:
            draft.unlink()
            raise CodecError(f"blob {record.ref!r} is damaged: its bytes have another digest")
        await asyncio.to_thread(name_whole, draft, path)
        return True

    async def finish(self) -> Manifest:
        """Mark the archive as complete."""
        self._manifest.complete = True
        await asyncio.to_thread(self._save)
        return self._manifest

    def _save(self) -> None:
        manifest = self._manifest
        if not manifest.complete:
            # Until it is complete, what an earlier run wrote stays known.
            manifest = msgspec.structs.replace(manifest, kinds=self._before | manifest.kinds)
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        write_whole(self._folder / MANIFEST, text)
