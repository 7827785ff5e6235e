"""Dump what an engine holds, load it elsewhere and back, and compare."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

import msgspec

from holdfast.engines.inmemory.archive import InMemoryArchive
from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.archive.expiry import Live
from holdfast.spi.archive.kinds import KINDS
from holdfast.spi.archive.records import BlobRecord, Record
from holdfast.spi.archive.storage import ArchiveSnapshot, ArchiveStorage
from holdfast.testing.harness import Harness
from holdfast.values.clock import ManualClock

Dump = dict[str, list[Record]]


async def dumped(storage: ArchiveStorage) -> tuple[datetime, Dump, dict[str, bytes]]:
    """All records of a tenant by kind, the bytes of its blobs by ref, and the time of both."""
    async with storage.snapshot() as snapshot:
        found = {kind.name: await _records(snapshot, kind.name) for kind in KINDS}
        blobs = {
            one.ref: b"".join([chunk async for chunk in snapshot.blob(one.ref)])
            for one in found["blobs"]
            if isinstance(one, BlobRecord)
        }
        return snapshot.at, found, blobs


async def _records(snapshot: ArchiveSnapshot, kind: str) -> list[Record]:
    return [record async for record in snapshot.records(kind)]


async def loaded(storage: ArchiveStorage, records: Dump, blobs: dict[str, bytes]) -> None:
    """Load all records of a dump, in two batches of each kind."""
    for kind in KINDS:
        some = records[kind.name]
        half = len(some) // 2
        for batch in (some[:half], some[half:]):
            await storage.load(kind.name, batch)
            for one in batch:
                if isinstance(one, BlobRecord):
                    await storage.load_blob(one, _once(blobs[one.ref]))


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def lines(records: Dump, at: datetime) -> dict[str, list[bytes]]:
    """The lines of what has not expired at a time, by kind."""
    live = Live(at)
    return {
        kind.name: [msgspec.json.encode(one) for one in records[kind.name] if live(one)]
        for kind in KINDS
    }


async def check_round_trips(harness: Harness) -> None:
    """What an engine dumps is loaded in process, and there and back, without any difference."""
    storage = harness.archive()
    if storage is None:
        return
    at, records, blobs = await dumped(storage)
    beside = InMemoryArchive(InMemory(clock=ManualClock(at)))
    await loaded(beside, records, blobs)
    _, copied, copied_blobs = await dumped(beside)
    assert lines(copied, at) == lines(records, at)
    assert copied_blobs == blobs
    back = harness.archive(tenant="copy")
    assert back is not None
    for _ in range(2):  # loading again has no effect
        await loaded(back, copied, copied_blobs)
    later, again, blobs_again = await dumped(back)
    assert lines(again, later) == lines(copied, later)
    assert blobs_again.items() <= blobs.items()
