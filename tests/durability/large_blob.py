"""A program that stores and reads a blob larger than memory, and says what it took.

Lines out: the peak of resident memory before, and after, in bytes; the digest of what went in, and
of what came out.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.blob_index import ObjectBlobIndex
from holdfast.engines.objects.engine import Objects

MIB = 1 << 20


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


async def _source(size_bytes: int) -> AsyncIterator[bytes]:
    block = os.urandom(MIB)
    for n in range(size_bytes // MIB):
        yield n.to_bytes(8) + block[8:]


async def _run(url: str, size_bytes: int) -> None:
    engine = await Objects.open(url)
    blobs = StoredBlobs(ObjectBlobs(engine, ObjectBlobIndex(engine)))
    # Whatever is loaded on first use is loaded now.
    assert await blobs.resolve(await blobs.store(b"small")) == b"small"
    before = _peak()
    ref = await blobs.store_stream(_source(size_bytes))
    stored = await blobs.stat(ref)
    digest, count = hashlib.sha256(), 0
    async for chunk in blobs.open(ref):
        digest.update(chunk)
        count += len(chunk)
    assert count == stored.size_bytes == size_bytes
    print(before, _peak(), stored.sha256, digest.hexdigest())  # noqa: T201 - it is the answer


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], int(sys.argv[2])))
