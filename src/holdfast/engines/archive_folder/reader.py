"""Reads an archive from a folder, and checks everything in it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import IO

from holdfast.engines.archive_folder.manifest import (
    KindEntry,
    Manifest,
    Segment,
    blob_path,
    read_manifest,
    segment_path,
)
from holdfast.spi.archive.kinds import Kind
from holdfast.spi.archive.records import BlobRecord
from holdfast.values.errors import CodecError, InvalidInputError

_CHUNK = 1 << 20


class ArchiveReader:
    """A complete archive in a folder.

    ::

        reader = await ArchiveReader.open(Path("backup"))
        async for number, lines in reader.segments(kind):
            ...
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self.manifest = manifest

    @classmethod
    async def open(cls, folder: Path) -> ArchiveReader:
        """Read the manifest. Raises ``InvalidInputError`` if the export was not completed."""
        manifest = await asyncio.to_thread(read_manifest, folder)
        if not manifest.complete:
            raise InvalidInputError(
                "folder", f"{folder} is not complete: run the export again, it continues"
            )
        return cls(folder, manifest)

    def _entry(self, kind: Kind) -> KindEntry:
        return self.manifest.kinds.get(kind.name, KindEntry())

    async def segments(self, kind: Kind) -> AsyncGenerator[tuple[int, list[bytes]], None]:
        """Yield the lines of each segment, with its number; each segment is checked first."""
        for number, segment in enumerate(self._entry(kind).segments, 1):
            yield number, await asyncio.to_thread(self._read, kind, number, segment)

    def _read(self, kind: Kind, number: int, segment: Segment) -> list[bytes]:
        path = segment_path(self._folder, kind, number)
        with _opened(path, segment.bytes) as file:
            data = file.read(segment.bytes + 1)
        if hashlib.sha256(data).hexdigest() != segment.sha256:
            raise CodecError(f"archive: {_short(path)} is damaged: it has another digest")
        lines = data.split(b"\n")
        if lines.pop() or len(lines) != segment.records:
            raise CodecError(f"archive: {_short(path)} does not hold {segment.records} records")
        return lines

    def check_blob(self, record: BlobRecord) -> None:
        """Raise unless a file with the blob's size exists."""
        _opened(blob_path(self._folder, record.sha256), record.size_bytes).close()

    async def blob(self, record: BlobRecord) -> AsyncIterator[bytes]:
        """Yield the bytes of a blob. Raises ``CodecError`` at the end if the digest differs."""
        path, digest = blob_path(self._folder, record.sha256), hashlib.sha256()
        with _opened(path, record.size_bytes) as file:
            while chunk := await asyncio.to_thread(file.read, _CHUNK):
                digest.update(chunk)
                yield chunk
        if digest.hexdigest() != record.sha256:
            raise CodecError(f"archive: {_short(path)} is damaged: it has another digest")


def _opened(path: Path, size: int) -> IO[bytes]:
    """Open a regular file that has this size, never through a symbolic link."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
    except FileNotFoundError:
        raise CodecError(f"archive: {_short(path)} is missing") from None
    except OSError as error:
        raise CodecError(f"archive: {_short(path)} cannot be read: {error.strerror}") from error
    found = os.fstat(file.fileno())
    if found.st_size != size or not os.path.isfile(path):  # noqa: PTH113 - of an open file
        file.close()
        raise CodecError(f"archive: {_short(path)} is not {size} bytes long: it was cut or changed")
    return file


def _short(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
