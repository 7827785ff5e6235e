"""Measures blobs in an object store with refs in Postgres, compared with the two bare drivers.

A ``store`` is compared with the driver's put, a SHA-256 and a bare INSERT of a row; a ``resolve``
with the driver's get, a SHA-256 and a bare SELECT of the row.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg
import obstore

from holdfast.bench.contest import Call, Contest, Result, measure
from holdfast.bench.round_trips import RoundTrips
from holdfast.bench.seaweedfs import SeaweedFS
from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.address import Address
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.engine import Objects
from holdfast.engines.postgres.blob_index import PostgresBlobIndex
from holdfast.engines.postgres.embedded import EmbeddedPostgres, socket_folder
from holdfast.engines.postgres.engine import Postgres

SIZES = {"1 KB": 1000, "64 MB": 64 << 20}
BAR = 1.5
SCHEMA = """
DROP SCHEMA IF EXISTS holdfast_blob_floor CASCADE;
CREATE SCHEMA holdfast_blob_floor;
CREATE TABLE holdfast_blob_floor.refs (
    ref text PRIMARY KEY, object_key text, size_bytes bigint, sha256 text, expires_at timestamptz);
"""
INSERT = (
    "INSERT INTO holdfast_blob_floor.refs (ref, object_key, size_bytes, sha256, expires_at) "
    "VALUES ($1, $1, $2, $3, now() + interval '1 day')"
)
SELECT = "SELECT object_key, size_bytes, sha256 FROM holdfast_blob_floor.refs WHERE ref = $1"


class Blobs:
    """Holdfast's blob store, with a blob of each size to read."""

    def __init__(self, blobs: StoredBlobs) -> None:
        self._blobs = blobs
        self._refs: dict[str, str] = {}

    async def fill(self, data: dict[str, bytes]) -> None:
        """Store the blobs that are read, the same as for the bare drivers."""
        for size, blob in data.items():
            self._refs[size] = await self._blobs.store(blob)

    def calls(self, data: dict[str, bytes]) -> dict[str, Call]:
        """Return the operations by name."""
        return _calls(data, self._store, self._resolve)

    async def _store(self, _size: str, data: bytes, _number: int) -> None:
        await self._blobs.store(data)

    async def _resolve(self, size: str, _data: bytes, _number: int) -> None:
        await self._blobs.resolve(self._refs[size])


class Floor:
    """The two bare drivers, with open connections."""

    def __init__(self, store: Any, held: Any) -> None:
        self._store = store
        self._held = held

    async def fill(self, data: dict[str, bytes]) -> None:
        """Store a blob of each size to read."""
        await self._held.execute(SCHEMA)
        for size, blob in data.items():
            await self._put(size, blob, 0)

    def calls(self, data: dict[str, bytes]) -> dict[str, Call]:
        """Return the operations by name."""
        return _calls(data, self._put, self._get)

    async def _put(self, size: str, data: bytes, number: int) -> None:
        key = f"{size} {number}"
        await obstore.put_async(self._store, f"floor/{key}", data)
        digest = hashlib.sha256(data).hexdigest()
        await self._held.execute(INSERT, key, len(data), digest)

    async def _get(self, size: str, _data: bytes, _number: int) -> None:
        key = f"{size} 0"
        (row,) = await self._held.fetch(SELECT, key)
        answer = await obstore.get_async(self._store, f"floor/{key}")
        data = await answer.bytes_async()
        if hashlib.sha256(data).hexdigest() != row["sha256"]:
            raise RuntimeError("the bare drivers read other bytes than they wrote")


Work: TypeAlias = Callable[[str, bytes, int], Awaitable[None]]


def _calls(data: dict[str, bytes], store: Work, resolve: Work) -> dict[str, Call]:
    found: dict[str, Call] = {}
    for size, blob in data.items():
        found[f"blob {size} store"] = partial(store, size, blob)
        found[f"blob {size} resolve"] = partial(resolve, size, blob)
    return found


async def run(progress: Callable[[str], None], *, quick: bool = False) -> list[Result]:
    """Start an S3 server and a Postgres, and measure each operation beside the bare drivers."""
    data = {name: os.urandom(size) for name, size in SIZES.items()}
    server = SeaweedFS()
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name:
        folder = Path(name)
        os.chmod(folder, 0o711)  # noqa: PTH101, S103 - the server may run as another user
        embedded = await EmbeddedPostgres.open(folder / "state")
        try:
            await asyncio.to_thread(server.start)
            url = server.url("holdfast-bench/blobs")
            engine = await Objects.open(url)
            postgres = await Postgres.open(embedded.url, auto_migrate=True, max_connections=4)
            held = await asyncpg.connect(embedded.url)
            bare = Address.parse(url).connect(timeout_seconds=60, retry_seconds=30)
            progress("filling")
            ours = Blobs(StoredBlobs(ObjectBlobs(engine, PostgresBlobIndex(postgres))))
            floor = Floor(bare, held)
            await ours.fill(data)
            await floor.fill(data)
            trips = await _count_round_trips(embedded, server, folder, data)
            results = []
            theirs = floor.calls(data)
            for operation, call in ours.calls(data).items():
                progress(operation)
                large = len(data[operation.removeprefix("blob ").rpartition(" ")[0]]) > 1 << 20
                contest = Contest(
                    operation,
                    call,
                    theirs[operation],
                    BAR,
                    blocks=(4 if large else 6) if quick else (10 if large else 30),
                    block=1 if large else 20,
                )
                results.append(await measure(contest, trips[operation]))
            await held.close()
            await postgres.aclose()
            await engine.aclose()
        finally:
            await embedded.aclose()
            server.remove()
    return results


class _Requests(RoundTrips):
    """Counts round trips on a TCP port: a request and its response are one."""

    @asynccontextmanager
    async def before(self, port: int) -> AsyncIterator[int]:
        """Listen on a new port, and forward everything to ``port``."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            back, forth = await asyncio.open_connection("127.0.0.1", port)
            up = asyncio.create_task(self._pass(reader, forth, id(reader), client=True))
            down = asyncio.create_task(self._pass(back, writer, id(reader), client=False))
            self._tasks |= {up, down}

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as listening:
            yield listening.sockets[0].getsockname()[1]
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


async def _count_round_trips(
    embedded: EmbeddedPostgres, server: SeaweedFS, folder: Path, data: dict[str, bytes]
) -> dict[str, float]:
    """Count the requests of one call of each operation, to object store and Postgres together."""
    proxy = folder / "proxy"
    proxy.mkdir(exist_ok=True)
    socket = socket_folder(embedded.folder) / ".s.PGSQL.5432"
    statements, requests = RoundTrips(), _Requests()
    async with (
        statements.between(proxy / ".s.PGSQL.5432", socket),
        requests.before(server.port) as port,
    ):
        place = server.url("holdfast-bench/blobs").replace(f":{server.port}", f":{port}")
        engine = await Objects.open(place)
        postgres = await Postgres.open(
            f"postgresql://postgres@/postgres?host={proxy}", max_connections=1
        )
        ours = Blobs(StoredBlobs(ObjectBlobs(engine, PostgresBlobIndex(postgres))))
        await ours.fill(data)
        found = {}
        for operation, call in ours.calls(data).items():
            await call(-1)
            before = statements.count + requests.count
            await call(-2)
            found[operation] = float(statements.count + requests.count - before)
        await postgres.aclose()
        await engine.aclose()
    return found
