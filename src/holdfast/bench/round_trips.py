"""Counts the round trips of a call on the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


class RoundTrips:
    """A proxy on a unix socket that counts how often the client sends after the server has sent."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting_for_server: dict[int, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def between(self, listen: Path, server: Path) -> AsyncIterator[RoundTrips]:
        """Listen on one socket and forward everything to the other."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            to_server, from_server = await self._connect(server)
            key = id(reader)
            up = asyncio.create_task(self._pass(reader, from_server, key, client=True))
            down = asyncio.create_task(self._pass(to_server, writer, key, client=False))
            self._tasks |= {up, down}

        listening = await asyncio.start_unix_server(accept, str(listen))
        async with listening:
            yield self
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, server: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(str(server))

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        key: int,
        *,
        client: bool,
    ) -> None:
        try:
            while data := await reader.read(1 << 16):
                if client and not self._waiting_for_server.get(key):
                    self.count += 1
                self._waiting_for_server[key] = client
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
