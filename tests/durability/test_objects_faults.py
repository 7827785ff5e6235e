"""Processes that are killed while they store blobs; and a blob larger than memory."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.bench.seaweedfs import SeaweedFS
from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.blob_index import ObjectBlobIndex
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.paths import Paths
from holdfast.engines.objects.ref_records import First, RefRecords
from holdfast.engines.postgres.blob_index import PostgresBlobIndex
from holdfast.engines.postgres.engine import Postgres
from holdfast.spi.blob_index import BlobIndexStorage
from holdfast.values.clock import ManualClock
from holdfast.values.errors import TimedOutError, UnavailableError
from holdfast.values.ids import new_ref
from tests.durability.blob_writer import content
from tests.engines.postgres_database import connected, empty_database
from tests.engines.seaweedfs_server import s3_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

KILLS = 50
GIB, MIB = 1 << 30, 1 << 20
ROOT = Path(__file__).parents[2]


@dataclass
class _Acknowledged:
    blobs: dict[str, tuple[int, int]] = field(default_factory=dict)
    opened: int = 0


async def _kill_writers(url: str, *, kills: int, database: str = "") -> _Acknowledged:
    """Start a writer and kill it at a random moment, again and again; what they acknowledged."""
    program = [sys.executable, "-m", "tests.durability.blob_writer", url, database]
    found = _Acknowledged()
    parent = await asyncio.create_subprocess_exec(
        *program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdin is not None
    assert parent.stdout is not None

    async def lines(until: Callable[[str], bool]) -> str:
        assert parent.stdout is not None
        while True:
            line = (await asyncio.wait_for(parent.stdout.readline(), 60)).decode().strip()
            assert line, "the writers ended by themselves"
            if line == "open":
                found.opened += 1
            elif line != "gone" and not line.startswith("pid "):
                ref, seed, size = line.split()
                found.blobs[ref] = (int(seed), int(size))
            if until(line):
                return line

    try:
        for kill in range(kills):
            parent.stdin.write(b"\n")
            pid = int((await lines(lambda line: line.startswith("pid "))).split()[1])
            if found.opened <= kill:
                await lines(lambda line: line == "open")
            if kill % 2:
                # Every other one has something acknowledged, however slow the machine is.
                before = len(found.blobs)
                await lines(lambda _: len(found.blobs) > before)  # noqa: B023 - awaited here
            await asyncio.sleep(random.random() * 0.15)  # noqa: S311 - any moment will do
            os.kill(pid, signal.SIGKILL)
            await lines(lambda line: line == "gone")
    finally:
        parent.stdin.close()
        parent.kill()
        await parent.wait()
    assert found.opened == kills
    return found


async def _check(
    engine: Objects, index: BlobIndexStorage, found: _Acknowledged, refs: list[str]
) -> None:
    """No ref to missing bytes, every acknowledged ref readable, no orphan left after the sweep."""
    assert len(found.blobs) >= found.opened // 2
    assert set(found.blobs) <= set(refs)
    objects = ObjectBlobs(engine, index)
    blobs = StoredBlobs(objects)

    async def read(ref: str) -> None:
        data = await blobs.resolve(ref)
        if ref in found.blobs:
            assert data == content(*found.blobs[ref])

    await engine.each(refs, read)
    await objects.sweep_orphans(grace_seconds=0.001)
    assert await objects.sweep_orphans(grace_seconds=0.001) == 0
    expected = set()
    for ref in refs:
        blob = await index.get(ref)
        assert blob is not None
        expected |= set(Paths("default").parts(blob.object_key, blob.info.size_bytes))
    stored = {found.path async for page in engine.pages("default/bytes") for found in page}
    assert stored == expected
    for ref in refs[:50]:
        await read(ref)


async def _refs(engine: Objects, index: BlobIndexStorage) -> list[str]:
    """Every ref that is valid, found around the index."""
    firsts = [
        found.path
        async for page in engine.pages("default/index/refs")
        for found in page
        if found.path.endswith("/0")
    ]
    records = RefRecords(engine, Paths("default"))

    async def ref(path: str) -> str | None:
        record = await records.read(path.split("/")[-2])
        assert record is not None
        first: First = record.first
        return first.ref if await index.get(first.ref) else None

    return [one for one in await engine.each(firsts, ref) if one]


async def _backends(around: Any) -> set[int]:
    """The processes of the server that work for this database."""
    rows = await around.fetch(
        "SELECT pid FROM pg_stat_activity "
        "WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    return {row["pid"] for row in rows}


@asynccontextmanager
async def _later(url: str) -> AsyncIterator[Objects]:
    """The same objects, when all that is not pinned has expired and all grace is over."""
    clock = ManualClock(datetime.now(UTC))
    clock.advance(3 * 86_400)
    engine = await Objects.open(url, clock=clock)
    yield engine
    await engine.aclose()


def _half_written(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if "#" in path.name]


@pytest.mark.parametrize(("kind", "kills"), [("s3", 20), ("disk", KILLS)])
async def test_kill_9_in_the_middle_of_a_blob_leaves_good_refs_and_no_orphans(
    kind: str, kills: int, tmp_path: Path
) -> None:
    url = s3_server().url(f"holdfast-faults/{new_ref()}") if kind == "s3" else tmp_path.as_uri()
    found = await _kill_writers(url, kills=kills)
    engine = await Objects.open(url)
    index = ObjectBlobIndex(engine)
    await _check(engine, index, found, await _refs(engine, index))
    assert _half_written(tmp_path) == []

    async with _later(url) as later:
        # Of the index too nothing is left in the end but what is pinned, and what is condemned.
        blobs = StoredBlobs(ObjectBlobs(later, ObjectBlobIndex(later)))
        await blobs.sweep()
        pinned = await _refs(later, ObjectBlobIndex(later))
        for ref in pinned:
            assert (await blobs.stat(ref)).pinned
            await blobs.delete(ref)
        left = {found.path async for page in later.pages("default") for found in page}
        assert {path for path in left if not path.startswith("default/index/keys/")} == set()
        for path in left:
            assert b'"ref":null' in (await later.get(path) or b"")


async def test_kill_9_in_the_middle_of_a_blob_whose_ref_is_in_postgres_is_the_same() -> None:
    url = s3_server().url(f"holdfast-faults/{new_ref()}")
    async with empty_database() as database, connected(database) as around:
        postgres = await Postgres.open(database, auto_migrate=True)
        ours = await _backends(around)
        found = await _kill_writers(url, kills=KILLS, database=database)
        async with asyncio.timeout(60):
            # The server may still be at the last commit of a writer that is dead already.
            while await _backends(around) - ours:
                await asyncio.sleep(0.05)
        engine = await Objects.open(url)
        rows = await around.fetch("SELECT ref FROM holdfast.blob_index WHERE ref IS NOT NULL")
        refs = [row["ref"] for row in rows]
        await _check(engine, PostgresBlobIndex(postgres), found, refs)
        await postgres.aclose()


@pytest.mark.parametrize("kind", ["s3", "disk"])
async def test_a_blob_of_1_gib_goes_in_and_out_with_less_than_64_mib_of_memory(
    kind: str, tmp_path: Path
) -> None:
    url = s3_server().url(f"holdfast-faults/{new_ref()}") if kind == "s3" else tmp_path.as_uri()
    program = [sys.executable, "-m", "tests.durability.large_blob", url, str(GIB)]
    # Else the allocator keeps freed buffers for each of its threads, more on a busy machine.
    exact = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}
    child = await asyncio.create_subprocess_exec(
        *program, cwd=ROOT, env=exact, stdout=subprocess.PIPE
    )
    said, _ = await child.communicate()
    assert child.returncode == 0
    before, after, stored, read = said.decode().split()
    assert stored == read
    assert int(after) - int(before) < 64 * MIB


async def test_a_server_that_dies_is_a_clear_error_and_the_store_goes_on_after_its_restart() -> (
    None
):
    server = SeaweedFS()
    server.start()
    try:
        engine = await Objects.open(server.url("holdfast-restart/x"), retry_seconds=0.5)
        blobs = StoredBlobs(ObjectBlobs(engine, ObjectBlobIndex(engine)))
        await blobs.store(b"before")
        server.kill()
        for call in (blobs.store(b"meanwhile"), blobs.stat("nothing"), engine.ping()):
            with pytest.raises((UnavailableError, TimedOutError)):
                await call
        await asyncio.to_thread(server.start)
        assert await blobs.resolve(await blobs.store(b"after")) == b"after"
        await engine.aclose()
    finally:
        server.remove()
