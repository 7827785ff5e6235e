"""Uploads a blob in parts of a fixed size; each part is an object.

This is not the multipart upload of S3. A killed process leaves an upload that no listing shows and
that no other process can abort; other stores name the feature differently, or lack it. Parts are
plain objects: every store has them, a listing shows them, the sweep deletes them.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.paths import Paths, new_key, part_bytes
from holdfast.spi.blobs import SMALL_BYTES, hash_more

_IN_FLIGHT = 3
"""How many parts of a stream are uploaded at once; they are held in memory."""

_AT_ONCE = 4
"""How many parts of a blob in memory are uploaded at once."""


class Upload:
    """The parts of one blob, and the digest of its bytes so far.

    ::

        upload = Upload(engine, paths)
        await upload.add(chunk)
        await upload.finish()
    """

    def __init__(self, engine: Objects, paths: Paths) -> None:
        self._engine = engine
        self._paths = paths
        self.key = new_key()
        self._part_bytes = part_bytes(self.key)
        self.size_bytes = 0
        self._digest = hashlib.sha256()
        self._count = 0
        self._rest = bytearray()
        self._filled = 0
        self._sent: set[asyncio.Task[None]] = set()

    @property
    def sha256(self) -> str:
        """The digest of the bytes so far."""
        return self._digest.hexdigest()

    async def store(self, data: bytes) -> None:
        """Upload all bytes without a copy, and hash them while they are sent."""
        self.size_bytes = len(data)
        if len(data) <= SMALL_BYTES:
            self._digest.update(data)
            await self._send(data, 1)
            await self._landed(0)
            return
        hashing = asyncio.create_task(hash_more(self._digest, data))
        try:
            whole = memoryview(data)
            for at in range(0, len(data), self._part_bytes):
                await self._send(whole[at : at + self._part_bytes], _AT_ONCE)
            await self._landed(0)
        finally:
            await hashing

    async def add(self, chunk: bytes) -> None:
        """Upload the next chunk of a stream."""
        await hash_more(self._digest, chunk)
        self.size_bytes += len(chunk)
        left = memoryview(chunk)
        while left:
            if not self._filled:
                self._rest = bytearray(self._part_bytes)
            taken = min(len(left), self._part_bytes - self._filled)
            self._rest[self._filled : self._filled + taken] = left[:taken]
            self._filled += taken
            left = left[taken:]
            if self._filled == self._part_bytes:
                full, self._rest, self._filled = self._rest, bytearray(), 0
                await self._send(full, _IN_FLIGHT)

    async def finish(self) -> None:
        """Send the last part, and wait until all parts are stored."""
        if self._filled or not self._count:
            await self._send(memoryview(self._rest)[: self._filled], _IN_FLIGHT)
        await self._landed(0)

    async def discard(self) -> None:
        """Delete the parts, after the requests in flight have ended."""
        await asyncio.gather(*self._sent, return_exceptions=True)
        parts = [self._paths.part(self.key, number) for number in range(self._count)]
        await self._engine.delete(parts)

    async def _send(self, part: Any, in_flight: int) -> None:
        """Send a part in a task: a cancelled caller waits for it before it deletes the parts."""
        await self._landed(in_flight - 1)
        path = self._paths.part(self.key, self._count)
        self._count += 1
        self._sent.add(asyncio.create_task(self._engine.put(path, part)))

    async def _landed(self, at_most: int) -> None:
        """Wait until at most ``at_most`` parts are in flight. Raises the error of a failed part."""
        while len(self._sent) > at_most:
            done, _ = await asyncio.wait(self._sent, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self._sent -= done
