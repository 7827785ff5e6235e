"""Export, import and copy of a tenant, between any engines."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from holdfast.contracts.archive_checks import read_record
from holdfast.engines.archive_folder.manifest import SEGMENT_BYTES, Manifest
from holdfast.engines.archive_folder.reader import ArchiveReader
from holdfast.engines.archive_folder.writer import ArchiveWriter
from holdfast.spi.archive.expiry import Live
from holdfast.spi.archive.kinds import KINDS, SEALED, UNSEALED, Kind
from holdfast.spi.archive.records import BlobRecord, Record
from holdfast.spi.archive.storage import ArchiveSnapshot, ArchiveStorage
from holdfast.values.errors import CodecError, ConflictError, InvalidInputError, NotSupportedError
from holdfast.wiring.archive_keys import ArchiveKeys, without_wrapping

BATCH_RECORDS = 500
BATCH_BYTES = 1 << 20
COPY = "copy"
"""The name of a copy in the table of imports."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an export, import or copy: the current kind, and the records of all kinds.

    ``total`` is 0 while the total is not known.
    """

    phase: str
    kind: str
    records: int
    bytes: int
    total: int = 0


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What was exported, imported or copied: records and digest of each kind.

    >>> ArchiveReport("acme", {"events": (2, "ab")}, 40, 0).records
    2
    """

    tenant: str
    kinds: dict[str, tuple[int, str]]
    bytes: int
    blobs: int

    @property
    def records(self) -> int:
        """How many records there are in all."""
        return sum(count for count, _ in self.kinds.values())


OnProgress = Callable[[Progress], None]


class _Count:
    """Counts the records, bytes and blobs, and calls the progress function."""

    def __init__(self, phase: str, report: OnProgress | None, total: int = 0) -> None:
        self._phase, self._report, self._total = phase, report, total
        self.records = self.bytes = self.blobs = 0

    def add(self, kind: Kind, records: int, size: int) -> None:
        self.records += records
        self.bytes += size
        if self._report:
            self._report(Progress(self._phase, kind.name, self.records, self.bytes, self._total))


async def export_archive(
    storage: ArchiveStorage,
    folder: Path,
    *,
    tenant: str,
    without: frozenset[str] = frozenset(),
    keys: ArchiveKeys | None = None,
    progress: OnProgress | None = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> ArchiveReport:
    """Write all data of a tenant into a folder, from one snapshot.

    ``keys`` wraps the data keys of a sealed tenant. ::

        await export_archive(storage, Path("backup"), tenant="acme")
    """
    count = _Count("export", progress)
    async with storage.snapshot() as snapshot:
        writing = ArchiveWriter(folder, tenant=tenant, at=snapshot.at, segment_bytes=segment_bytes)
        async with writing as writer:
            for kind in await _kinds(storage, snapshot, without):
                await _export_kind(snapshot, writer, kind, count, keys)
            return _report(await writer.finish(), count)


async def _export_kind(
    snapshot: ArchiveSnapshot,
    writer: ArchiveWriter,
    kind: Kind,
    count: _Count,
    keys: ArchiveKeys | None,
) -> None:
    async with aclosing(snapshot.records(kind.name)) as records:
        async for found in records:
            record = found if keys is None else await keys.convert(found)
            line = msgspec.json.encode(record)
            if isinstance(record, BlobRecord):
                async with aclosing(snapshot.blob(record.ref)) as chunks:
                    await writer.add_blob(record, chunks)
                count.blobs += 1
                count.add(kind, 0, record.size_bytes)
            await writer.add(kind, line)
            count.add(kind, 1, len(line))
    await writer.end_kind(kind)


async def import_archive(
    storage: ArchiveStorage,
    folder: Path,
    *,
    tenant: str,
    rename: bool = False,
    keys: ArchiveKeys | None = None,
    progress: OnProgress | None = None,
) -> ArchiveReport:
    """Load an archive into a tenant without data, then compare the stored records with it.

    Nothing is loaded unless all digests are right. An interrupted import continues after the last
    segment that it loaded. ::

        await import_archive(storage, Path("backup"), tenant="acme")
    """
    reader = await ArchiveReader.open(folder)
    manifest = reader.manifest
    if manifest.tenant != tenant and not rename:
        raise InvalidInputError(
            "tenant",
            f"the archive is of tenant {manifest.tenant[:80]!r}, not {tenant!r}: open that tenant, "
            "or allow another name with rename=True (--rename)",
        )
    if keys is not None:
        has_content = any(
            entry.records for kind, entry in manifest.kinds.items() if kind not in UNSEALED
        )
        sealed = SEALED.name in manifest.kinds
        keys.check_archive(sealed=sealed, tenant=manifest.tenant, has_content=has_content)
    _check_kinds(storage, [kind for kind in KINDS if manifest.kinds.get(kind.name)])
    total = sum(entry.records for entry in manifest.kinds.values())
    checking = _Count("check", progress, total)
    for kind in KINDS:
        await _check_segments(reader, kind, checking, keys)
    if keys is not None:
        keys.check_first_keys()
    count = _Count("import", progress, total)
    loaded = await storage.begin_import(manifest.id)
    if loaded is not None:
        for kind in KINDS:
            await _load_segments(storage, reader, kind, count, loaded)
    async with storage.snapshot() as found:
        compared = _Count("verify", progress, total)
        kinds = [kind for kind in KINDS if kind.name in manifest.kinds]
        await _compare(kinds, _archived(reader), found, compared, tenant)
    await storage.finish_import(manifest.id)
    return _report(manifest, count)


async def _check_segments(
    reader: ArchiveReader, kind: Kind, count: _Count, keys: ArchiveKeys | None
) -> None:
    """Check every record and every digest before anything is loaded."""
    digest = hashlib.sha256()
    async with aclosing(reader.segments(kind)) as segments:
        async for number, lines in segments:
            for at, line in enumerate(lines, 1):
                record = read_record(kind, line, at=_at(kind, number, at))
                if isinstance(record, BlobRecord):
                    await asyncio.to_thread(reader.check_blob, record)
                if keys is not None:
                    await keys.check(record)
                digest.update(line + b"\n")
            count.add(kind, len(lines), sum(map(len, lines)))
    entry = reader.manifest.kinds.get(kind.name)
    if entry is not None and entry.sha256 != digest.hexdigest():
        raise CodecError(
            f"archive: the digest of the records of {kind.name} is not that of the manifest: "
            "the archive is damaged; copy it again"
        )


async def _load_segments(
    storage: ArchiveStorage,
    reader: ArchiveReader,
    kind: Kind,
    count: _Count,
    loaded: frozenset[str],
) -> None:
    async with aclosing(reader.segments(kind)) as segments:
        async for number, lines in segments:
            name = f"{kind.name}-{number}"
            if name not in loaded:
                for first, some in _batches(lines):
                    batch = [
                        read_record(kind, line, at=_at(kind, number, at))
                        for at, line in enumerate(some, first)
                    ]
                    await storage.load(kind.name, batch)
                    for one in batch:
                        if isinstance(one, BlobRecord):
                            await storage.load_blob(one, reader.blob(one))
                await storage.segment_loaded(reader.manifest.id, name)
            count.add(kind, len(lines), sum(map(len, lines)))


def _batches(lines: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield lines in batches that are bounded in number and bytes, with the number of the first."""
    start = size = 0
    for at, line in enumerate(lines):
        if at > start and (at - start >= BATCH_RECORDS or size + len(line) > BATCH_BYTES):
            yield start + 1, lines[start:at]
            start, size = at, 0
        size += len(line)
    yield start + 1, lines[start:]


async def copy_tenant(
    source: ArchiveStorage,
    target: ArchiveStorage,
    *,
    tenant: str,
    without: frozenset[str] = frozenset(),
    keys: ArchiveKeys | None = None,
    progress: OnProgress | None = None,
) -> ArchiveReport:
    """Copy all data of a tenant to another engine, then compare both.

    If a copy was interrupted, call it again: it starts over, and skips records that exist. ::

        await copy_tenant(here, there, tenant="acme")
    """
    count, digests = _Count("copy", progress), dict[str, tuple[int, str]]()
    async with source.snapshot() as snapshot:
        kinds = await _kinds(source, snapshot, without)
        if await target.begin_import(COPY) is not None:
            for kind in kinds:
                digests[kind.name] = await _copy_kind(snapshot, target, kind, count, keys)
        async with target.snapshot() as found:
            compared = _Count("verify", progress, count.records)
            await _compare(kinds, _live(snapshot), found, compared, tenant, copied=True)
    await target.finish_import(COPY)
    return ArchiveReport(tenant, digests, count.bytes, count.blobs)


async def _copy_kind(
    snapshot: ArchiveSnapshot,
    target: ArchiveStorage,
    kind: Kind,
    count: _Count,
    keys: ArchiveKeys | None,
) -> tuple[int, str]:
    batch, size, records, digest = list[Record](), 0, 0, hashlib.sha256()

    async def flush() -> None:
        if batch:
            _check_kinds(target, [kind])
            await target.load(kind.name, batch)
        for one in batch:
            if isinstance(one, BlobRecord):
                async with aclosing(snapshot.blob(one.ref)) as chunks:
                    await target.load_blob(one, chunks)
                count.blobs += 1
                count.add(kind, 0, one.size_bytes)
        count.add(kind, len(batch), size)
        batch.clear()

    async with aclosing(snapshot.records(kind.name)) as found:
        async for record in found:
            line = msgspec.json.encode(record) + b"\n"
            digest.update(line)
            batch.append(record if keys is None else await keys.convert(record))
            size, records = size + len(line), records + 1
            if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
                await flush()
                size = 0
    await flush()
    return records, digest.hexdigest()


Records = Callable[[Kind], AsyncGenerator[Record, None]]


def _archived(reader: ArchiveReader) -> Records:
    async def records(kind: Kind) -> AsyncGenerator[Record, None]:
        async with aclosing(reader.segments(kind)) as segments:
            async for number, lines in segments:
                for at, line in enumerate(lines, 1):
                    yield read_record(kind, line, at=_at(kind, number, at))

    return records


def _live(snapshot: ArchiveSnapshot) -> Records:
    return lambda kind: snapshot.records(kind.name)


async def _compare(
    kinds: list[Kind],
    wanted: Records,
    found: ArchiveSnapshot,
    count: _Count,
    tenant: str,
    *,
    copied: bool = False,
) -> None:
    """Raise ``ConflictError`` unless the records are equal, except those that expired meanwhile.

    Data keys that were ``copied`` are wrapped by other keys.
    """
    live = Live(found.at)
    for kind in kinds:
        async with (
            aclosing(wanted(kind)) as left,
            aclosing(found.records(kind.name)) as right,
        ):
            async for expected in left:
                if not live(expected):
                    continue
                actual = await anext(right, None)
                same = actual == expected or (
                    copied and actual and without_wrapping(actual) == without_wrapping(expected)
                )
                if not same:
                    raise _differs(kind, tenant, expected, actual)
                count.add(kind, 1, 0)
            extra = await anext(right, None)
            if extra is not None:
                raise _differs(kind, tenant, None, extra)


def _differs(kind: Kind, tenant: str, expected: Any, actual: Any) -> ConflictError:
    names = kind.record.__struct_fields__[:3]
    where = [getattr(expected or actual, name) for name in names]
    what = "is not there" if actual is None else "differs" if expected else "should not be there"
    return ConflictError(
        "import",
        tenant,
        f"a record of {kind.name} {what}: {where}. Somebody wrote to tenant {tenant!r} meanwhile: "
        "import into a tenant without data",
    )


async def _kinds(
    storage: ArchiveStorage, snapshot: ArchiveSnapshot, without: frozenset[str]
) -> list[Kind]:
    """Return the kinds to read; history and episodes are one log."""
    left_out = without | {"episodes"} if "history" in without else without
    if SEALED.name in storage.kinds:
        async with aclosing(snapshot.records(SEALED.name)) as found:
            if await anext(found, None) is None:
                left_out |= {SEALED.contract}
    return [kind for kind in KINDS if kind.name in storage.kinds and kind.contract not in left_out]


def _check_kinds(storage: ArchiveStorage, kinds: list[Kind]) -> None:
    for kind in kinds:
        if kind.name not in storage.kinds:
            raise NotSupportedError(
                "the target", kind.name, why=f"no engine of it serves {kind.contract}"
            )


def _report(manifest: Manifest, count: _Count) -> ArchiveReport:
    kinds = {kind: (one.records, one.sha256) for kind, one in manifest.kinds.items()}
    return ArchiveReport(manifest.tenant, kinds, count.bytes, count.blobs)


def _at(kind: Kind, number: int, line: int) -> str:
    return f"{kind.name}-{number:06}.jsonl:{line}"
