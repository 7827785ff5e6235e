"""A program that stores blobs until it is killed, and says which ones were acknowledged.

It imports everything once and then forks a child for each line that it reads, so that fifty
processes cost a second and not twenty. The driver starts its threads after the fork.

Lines out: ``pid N``, ``open``, ``REF SEED SIZE`` for each acknowledged blob, ``gone`` when the
child has been reaped.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator

from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.blob_index import ObjectBlobIndex
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.paths import PART_BYTES
from holdfast.engines.postgres.blob_index import PostgresBlobIndex
from holdfast.engines.postgres.engine import Postgres


def content(seed: int, size: int) -> bytes:
    """The bytes of a blob, known to whoever checks it."""
    block = random.Random(seed).randbytes(min(size, 4096))  # noqa: S311 - the same each time
    return (block * (size // 4096 + 1))[:size] if size else b""


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 1 << 20):
        yield data[at : at + (1 << 20)]


async def _write(blobs: StoredBlobs, rng: random.Random) -> None:
    while True:
        seed = rng.getrandbits(60)
        large = rng.random() < 0.1
        size = PART_BYTES + rng.randrange(PART_BYTES) if large else rng.randrange(20_000)
        data = content(seed, size)
        if rng.random() < 0.5:
            ref = await blobs.store_stream(_chunks(data))
        else:
            ref = await blobs.store(data)
        _say(f"{ref} {seed} {size}")
        if rng.random() < 0.2:
            await blobs.pin(ref)


async def _run(url: str, database: str) -> None:
    engine = await Objects.open(url)
    index = (
        PostgresBlobIndex(await Postgres.open(database, max_connections=4))
        if database
        else ObjectBlobIndex(engine)
    )
    _say("open")
    blobs = StoredBlobs(ObjectBlobs(engine, index))
    rng = random.Random()  # noqa: S311 - any moment will do
    await asyncio.gather(*(_write(blobs, rng) for _ in range(3)))


def main() -> None:
    """Fork a writer for each line of input."""
    url, database = sys.argv[1:]
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(_run(url, database))
        _say(f"pid {child}")
        os.waitpid(child, 0)
        _say("gone")


if __name__ == "__main__":
    main()
