"""Engines and bare clients for tests of the Redis engine."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import redis.asyncio

from holdfast.engines.redis.engine import Redis
from tests.engines.redis import server
from tests.engines.valkey_server import ValkeyServer


@asynccontextmanager
async def engine(url: str = "", **how: Any) -> AsyncIterator[Redis]:
    """An engine on an empty server, or on the one that the URL names."""
    if not url:
        assert server().ask("FLUSHALL") == "+OK"
    opened = await Redis.open(url or server().url, **how)
    try:
        yield opened
    finally:
        await opened.aclose()


@asynccontextmanager
async def bare(url: str = "") -> AsyncIterator[Any]:
    """The driver's own client, to look around the stores."""
    async with redis.asyncio.Redis.from_url(url or server().url) as client:
        yield client


@contextmanager
def own_server(*options: str, fsync: str = "no") -> Iterator[ValkeyServer]:
    """A server with settings of its own."""
    own = ValkeyServer(*options, fsync=fsync)
    own.start()
    try:
        yield own
    finally:
        own.remove()


class Wire:
    """A way to the server that can lose answers: what was asked is done, and nobody hears of it."""

    def __init__(self) -> None:
        self.lose = 0
        self.url = ""

    @asynccontextmanager
    async def between(self, port: int, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Wire]:
        """Listen on a port of its own and pass everything on; with ``tls``, decrypted."""
        ends: list[asyncio.StreamWriter] = []
        tasks: list[asyncio.Task[None]] = []

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            down, up = await asyncio.open_connection("127.0.0.1", port)
            ends.extend((up, writer))
            tasks.append(asyncio.create_task(self._pass(reader, up, answers=False)))
            tasks.append(asyncio.create_task(self._pass(down, writer, answers=True)))

        listening = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
        async with listening:
            scheme = "redis" if tls is None else "rediss"
            self.url = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0"
            yield self
            for end in ends:
                end.close()
            await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)
            await asyncio.gather(*tasks)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if answers and self.lose:
                    self.lose -= 1
                    break
                writer.write(data)
                await writer.drain()
        writer.close()
