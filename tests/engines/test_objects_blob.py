"""Blobs on an object store: parts, names, what a crash leaves and how it is removed."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import obstore
import pytest
import pytest_asyncio

from holdfast.contracts.blob_index import BlobIndex
from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.blob_index import ObjectBlobIndex
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.maintenance import Maintenance
from holdfast.engines.objects.paths import PART_BYTES, Paths
from holdfast.values.blobs import MAX_CHUNK_BYTES
from holdfast.values.clock import ManualClock
from holdfast.values.errors import CodecError, ConflictError, NotFoundError, UnavailableError
from holdfast.values.ids import new_ref
from tests.engines.seaweedfs_server import s3_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = ["a:b{c}*\n", "../", "../../etc", "a/b", "%2e%2e%2f", "Acme", "é 🦀", "x" * 512]
DAY = 86_400
PARTS = 5
MANY_PARTS = PARTS * PART_BYTES >> 20
"""So many megabytes are exactly so many parts."""


@pytest_asyncio.fixture(loop_scope="session", params=["s3", "disk"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Objects]:
    """An empty place, on a clock that the test moves."""
    s3 = request.param == "s3"
    url = s3_server().url(f"holdfast-blobs/{new_ref()}") if s3 else tmp_path.as_uri()
    opened = await Objects.open(url, clock=ManualClock())
    yield opened
    await opened.aclose()


def _blobs(engine: Objects, tenant: str = "default", **options: Any) -> StoredBlobs:
    return StoredBlobs(_storage(engine, tenant), **options)


def _storage(engine: Objects, tenant: str = "default") -> ObjectBlobs:
    return ObjectBlobs(engine, ObjectBlobIndex(engine, tenant=tenant), tenant=tenant)


async def _paths(engine: Objects, below: str = "") -> list[str]:
    found = await obstore.list(engine._store).collect_async()
    return sorted(one["path"] for one in found if below in one["path"])


def _advance(engine: Objects, seconds: float) -> None:
    clock = engine._clock
    assert isinstance(clock, ManualClock)
    clock.advance(seconds)


async def _source(megabytes: int) -> AsyncIterator[bytes]:
    for n in range(megabytes):
        yield bytes([n % 251]) * (1 << 20)


async def test_hostile_tenants_and_refs_never_become_a_path(engine: Objects) -> None:
    plain = set("abcdefghijklmnopqrstuvwxyz0123456789-_=~./")
    refs = {}
    for tenant in HOSTILE:
        blobs = _blobs(engine, tenant)
        refs[tenant] = await blobs.store(f"of {tenant}")
        index = BlobIndex(ObjectBlobIndex(engine, tenant=tenant))
        for ref in HOSTILE:
            if "\n" not in ref:
                facts: Any = {"size_bytes": 1, "content_type": "a/b", "sha256": "0" * 64}
                await index.put(ref, f"key {ref}"[:512], **facts, ttl_seconds=60)
                assert await index.get(ref) is not None
            with pytest.raises((NotFoundError, ValueError)):
                await blobs.resolve("../" + ref)
    for path in await _paths(engine):
        assert set(path) <= plain
        assert not {"", ".", ".."} & set(path.split("/"))
        assert max(map(len, path.split("/"))) <= 200
    for tenant in HOSTILE:
        assert await _blobs(engine, tenant).resolve(refs[tenant]) == f"of {tenant}".encode()
    names = await Maintenance(engine, lambda name: ObjectBlobIndex(engine, tenant=name)).tenants()
    assert sorted(names) == sorted(HOSTILE)


async def test_a_blob_larger_than_a_part_is_read_by_range_across_its_parts(engine: Objects) -> None:
    data = os.urandom(2 * PART_BYTES + 12_345)
    blobs = _blobs(engine)
    ref = await blobs.store(data)
    assert len(await _paths(engine, "/bytes/")) == 3
    assert await blobs.resolve(ref) == data
    assert (await blobs.stat(ref)).sha256 == hashlib.sha256(data).hexdigest()
    for start, length in (
        (0, None),
        (PART_BYTES - 1, 2),
        (PART_BYTES, 1),
        (PART_BYTES + 5, PART_BYTES),
        (2 * PART_BYTES, None),
        (2 * PART_BYTES + 12_344, 100),
        (10, 2 * PART_BYTES),
    ):
        chunks = [chunk async for chunk in blobs.open(ref, offset=start, length=length)]
        stop = len(data) if length is None else start + length
        assert b"".join(chunks) == data[start:stop]
        assert all(0 < len(chunk) <= MAX_CHUNK_BYTES for chunk in chunks)


async def test_a_blob_of_exactly_its_parts_has_no_part_more(engine: Objects) -> None:
    data = os.urandom(2 * PART_BYTES)

    async def halves() -> AsyncIterator[bytes]:
        yield data[: PART_BYTES + 1]
        yield data[PART_BYTES + 1 :]

    blobs = _blobs(engine)
    for ref in (await blobs.store(data), await blobs.store_stream(halves())):
        assert await blobs.resolve(ref) == data
        assert await blobs.delete(ref)
    assert await _paths(engine, "/bytes/") == []


async def test_a_lost_part_in_the_middle_is_a_codec_error(engine: Objects) -> None:
    blobs = _blobs(engine)
    ref = await blobs.store_stream(_source(MANY_PARTS))
    (lost,) = await _paths(engine, ".1")
    await engine.delete([lost])
    with pytest.raises(CodecError):
        await blobs.resolve(ref)
    with pytest.raises(CodecError):
        async for _ in blobs.open(ref):
            pass
    assert len([chunk async for chunk in blobs.open(ref, length=100)]) == 1


async def test_a_blob_that_is_deleted_while_it_is_read_is_not_found(engine: Objects) -> None:
    blobs = _blobs(engine)
    ref = await blobs.store_stream(_source(2 * MANY_PARTS))
    stream = blobs.open(ref)
    await anext(stream)
    await blobs.delete(ref)
    with pytest.raises(NotFoundError):
        async for _ in stream:
            pass


async def test_a_blob_can_be_copied_while_it_is_read(engine: Objects) -> None:
    blobs = _blobs(engine)
    ref = await blobs.store_stream(_source(MANY_PARTS))
    copies = await asyncio.gather(*(blobs.store_stream(blobs.open(ref)) for _ in range(3)))
    whole = (await blobs.stat(ref)).sha256
    assert {(await blobs.stat(copy)).sha256 for copy in copies} == {whole}


async def test_the_error_of_a_large_streams_source_is_the_callers_own(engine: Objects) -> None:
    class BrokeOffError(ConnectionError):
        """Not ours, and of a kind that an engine raises too."""

    async def failing() -> AsyncIterator[bytes]:
        async for chunk in _source(MANY_PARTS):
            yield chunk
        raise BrokeOffError

    before = await _paths(engine)
    with pytest.raises(BrokeOffError):
        await _blobs(engine).store_stream(failing())
    assert await _paths(engine) == before


async def test_bytes_without_a_ref_are_removed_after_the_grace_and_not_before(
    engine: Objects,
) -> None:
    blobs = _blobs(engine)
    kept = await blobs.store(b"kept")
    pinned = await blobs.store_stream(_source(MANY_PARTS))
    await blobs.pin(pinned)
    key = "0" * 40 + "-4"
    for number in range(3):
        await engine.put(f"default/bytes/00/{key}.{number}", b"left by a crash")
    assert await _storage(engine).sweep_orphans() == 0
    _advance(engine, DAY - 60)
    assert await _storage(engine).sweep_orphans() == 0
    _advance(engine, 120)
    assert await _storage(engine).sweep_orphans() == 3
    assert await _storage(engine).sweep_orphans() == 0
    assert (await blobs.stat(pinned)).size_bytes == MANY_PARTS << 20
    # Expired, but its ref has it still: that is the other sweep's.
    assert len(await _paths(engine, "/bytes/")) == 1 + PARTS
    assert await blobs.sweep() == 1
    assert len(await _paths(engine, "/bytes/")) == PARTS
    with pytest.raises(NotFoundError):
        await blobs.resolve(kept)


async def test_an_upload_that_outlasts_the_grace_fails_loudly_and_leaves_nothing(
    engine: Objects,
) -> None:
    blobs = _blobs(engine)

    async def slow() -> AsyncIterator[bytes]:
        async for chunk in _source(MANY_PARTS):
            yield chunk
        while len(await _paths(engine, "/bytes/")) < PARTS:
            # Still on their way.
            await asyncio.sleep(0.01)
        _advance(engine, DAY + 60)
        assert await _storage(engine).sweep_orphans() == PARTS

    with pytest.raises(ConflictError, match="upload them again"):
        await blobs.store_stream(slow())
    assert await _paths(engine, "/bytes/") == []


async def test_sweeps_beside_writers_harm_no_blob(engine: Objects) -> None:
    blobs = _blobs(engine)
    stored: dict[str, bytes] = {}

    async def write(writer: int) -> None:
        for at in range(15):
            data = f"{writer}.{at}".encode()
            try:
                ref = await blobs.store(data)
            except (ConflictError, UnavailableError):
                # No grace at all: an upload may lose to the sweep, but never quietly.
                continue
            stored[ref] = data

    async def sweep() -> None:
        _advance(engine, 1)
        for _ in range(15):
            # No grace at all: it may remove what the other sweep is just writing.
            with suppress(UnavailableError):
                await _storage(engine).sweep_orphans(grace_seconds=0.001)
            await blobs.sweep()

    await asyncio.gather(*map(write, range(4)), sweep(), sweep())
    for ref, data in stored.items():
        assert await blobs.resolve(ref) == data
    await _storage(engine).sweep_orphans(grace_seconds=0.001)
    assert len(await _paths(engine, "/bytes/")) == len(stored)


async def test_maintenance_sweeps_every_tenant(engine: Objects) -> None:
    for tenant in HOSTILE:
        blobs = _blobs(engine, tenant, ttl_seconds=60)
        await blobs.store(b"expires")
        await blobs.pin(await blobs.store(b"stays"))
        await blobs.store(b"")
        await engine.put(f"{Paths(tenant).bytes}/00/{'0' * 40}-4.0", b"left by a crash")
    jobs = Maintenance(engine, lambda name: ObjectBlobIndex(engine, tenant=name)).jobs()
    assert {name: await job() for name, job in jobs.items()} == dict.fromkeys(jobs, 0)
    _advance(engine, DAY + 60)
    done = {name: await job() for name, job in jobs.items()}
    assert done == {"expired blobs": 2 * len(HOSTILE), "orphaned objects": len(HOSTILE)}
    assert len(await _paths(engine, "/bytes/")) == len(HOSTILE)


async def test_a_half_written_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    engine = await Objects.open(tmp_path.as_uri(), clock=ManualClock())
    blobs = _blobs(engine)
    ref = await blobs.store(b"abc")
    staged = tmp_path / "default" / "bytes" / "00" / f"{'0' * 40}-4.0#1"
    staged.parent.mkdir(exist_ok=True)
    staged.write_bytes(b"half")
    assert await _storage(engine).sweep_orphans() == 0
    assert staged.exists()
    _advance(engine, DAY + 60)
    assert await _storage(engine).sweep_orphans() == 1
    assert not staged.exists()
    await blobs.sweep()
    with pytest.raises(NotFoundError):
        await blobs.resolve(ref)
