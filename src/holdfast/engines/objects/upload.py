"""A blob on its way into the store, in parts of a fixed size that are objects of their own.

Not the multipart upload of S3: what a killed process leaves of that is in no listing, cannot be
aborted by whoever finds it, and exists under another name or not at all on other stores. Parts are
plain objects: every store has them, a listing shows them, the sweep removes them.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.paths import Paths, new_key, part_bytes
from holdfast.spi.blobs import SMALL_BYTES, hash_more

_IN_FLIGHT = 3
"""How many parts wait for an answer while the next one fills: what a stream holds in memory."""

_AT_ONCE = 4
"""The same where the whole is in memory anyway."""


class Upload:
    """The parts of one blob, and the digest of all that came.

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
        """The digest of all that came."""
        return self._digest.hexdigest()

    async def store(self, data: bytes) -> None:
        """The whole at once: hashed while it is sent, and sent as it is, without a copy."""
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
        """The next chunk of a stream."""
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
        """Send what is left, and wait until all of it is stored."""
        if self._filled or not self._count:
            await self._send(memoryview(self._rest)[: self._filled], _IN_FLIGHT)
        await self._landed(0)

    async def discard(self) -> None:
        """Remove the parts again, after those that are under way have come to rest."""
        await asyncio.gather(*self._sent, return_exceptions=True)
        parts = [self._paths.part(self.key, number) for number in range(self._count)]
        await self._engine.delete(parts)

    async def _send(self, part: Any, in_flight: int) -> None:
        """In a task of its own: whoever is cancelled waits for it before removing the parts."""
        await self._landed(in_flight - 1)
        path = self._paths.part(self.key, self._count)
        self._count += 1
        self._sent.add(asyncio.create_task(self._engine.put(path, part)))

    async def _landed(self, at_most: int) -> None:
        """Wait until at most so many parts are under way; raise what went wrong."""
        while len(self._sent) > at_most:
            done, _ = await asyncio.wait(self._sent, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self._sent -= done
