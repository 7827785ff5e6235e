"""A TCP proxy that can cut connections, delay them, make them half-open, or drop responses."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of 0: closing resets the connection, so that the other side gets an error."""


@dataclass(eq=False, slots=True)
class _Wire:
    """One connection through the proxy: both ends, and the tasks that forward the bytes."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    passing: list[asyncio.Task[None]] = field(default_factory=list)
    silent: bool = False
    deaf: bool = False

    def reset(self) -> None:
        """Reset both ends, like a router that lost the connection."""
        _reset(self.client)
        _reset(self.server)


def _reset(end: asyncio.StreamWriter) -> None:
    bare = end.get_extra_info("socket")
    if bare is not None:
        with contextlib.suppress(OSError):
            bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    end.transport.abort()


class Proxy:
    """Listens on a port of loopback and forwards everything to one server, unless a fault stops it.

    ::

        async with Proxy("127.0.0.1", 5432).listening() as proxy:
            url = f"postgresql://ana@127.0.0.1:{proxy.port}/main"
            await proxy.cut()
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._server_port = port
        self._wires: set[_Wire] = set()
        self._delay = 0.0
        self.port = 0
        self.resets = 0
        """How many connections were reset."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Proxy]:
        """Accept connections until the block ends."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            passing = [task for wire in self._wires for task in wire.passing]
            await self.cut()
            await asyncio.gather(*passing, return_exceptions=True)

    async def cut(self) -> None:
        """Reset every connection; new ones work."""
        self._reset(self._wires)

    async def redirect(self, port: int) -> None:
        """Reset every connection, and forward new ones to another port of the same host."""
        self._server_port = port
        await self.cut()

    async def delay(self, seconds: float, *, for_seconds: float) -> None:
        """Delay every byte by ``seconds``, in both directions."""
        self._delay = seconds
        await asyncio.sleep(for_seconds)
        self._delay = 0.0

    async def silence(self, *, for_seconds: float) -> None:
        """Forward nothing on the current connections, in either direction; then reset them.

        Neither side is notified meanwhile: the connections are half-open. New connections work.
        """
        wires = set(self._wires)
        for wire in wires:
            wire.silent = True
        await asyncio.sleep(for_seconds)
        self._reset(wires)

    async def deafen(self, *, for_seconds: float) -> None:
        """Drop every response, then reset connections: clients cannot know what was executed."""
        wires = set(self._wires)
        for wire in wires:
            wire.deaf = True
        await asyncio.sleep(for_seconds)
        self._reset(wires)

    def _reset(self, wires: set[_Wire]) -> None:
        for wire in list(wires & self._wires):
            wire.reset()
            self.resets += 1

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, requests = await asyncio.open_connection(self._host, self._server_port)
        except OSError:
            # The server does not listen: the client gets an error, as it would without a proxy.
            _reset(writer)
            return
        wire = _Wire(writer, requests)
        self._wires.add(wire)
        wire.passing = [
            asyncio.create_task(self._pass(wire, reader, requests, answer=False)),
            asyncio.create_task(self._pass(wire, answers, writer, answer=True)),
        ]
        await asyncio.gather(*wire.passing, return_exceptions=True)
        self._wires.discard(wire)

    async def _pass(
        self,
        wire: _Wire,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answer: bool,
    ) -> None:
        try:
            while data := await reader.read(_CHUNK):
                if self._delay:
                    await asyncio.sleep(self._delay)
                if wire.silent or (wire.deaf and answer):
                    continue
                writer.write(data)
                await writer.drain()
        except OSError:
            # One side was reset; the other side is closed below.
            pass
        finally:
            # close() first sends the buffered bytes, then ends the connection to the other side.
            writer.close()
