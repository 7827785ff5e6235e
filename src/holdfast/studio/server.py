"""Serves only Studio, on a loopback address."""

from __future__ import annotations

import asyncio
import socket

from holdfast.server.connections import HttpServer
from holdfast.server.options import LOOPBACK_NAMES, ServiceOptions
from holdfast.server.service import listening
from holdfast.studio.access import Access
from holdfast.studio.app import studio
from holdfast.wiring.state import State

HOST = "127.0.0.1"


class StudioServer:
    """Studio on a port of this machine.

    ::

        server = StudioServer(state, port=0)
        print(server.link())
        await server.run()
    """

    def __init__(
        self,
        state: State,
        *,
        port: int = 0,
        read_only: bool = False,
        access: Access | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        self._state = state
        self._listener = listener or listening(HOST, port)
        self._port = self._listener.getsockname()[1]
        self._access = access or Access()
        self._closing = asyncio.Event()
        self.asgi = studio(
            state,
            self._access,
            hosts=frozenset(LOOPBACK_NAMES),
            read_only=read_only,
            closing=self._closing,
        )

    @property
    def url(self) -> str:
        """The address of Studio, for a browser that has a session."""
        return f"http://{HOST}:{self._port}/studio"

    def link(self) -> str:
        """Return a new link that opens a session, once, within five minutes."""
        return f"{self.url}/login?token={self._access.link(self._state.tenant)}"

    def stop(self) -> None:
        """Stop the server, and end open streams."""
        self._closing.set()

    async def run(self) -> None:
        """Serve until ``stop`` is called."""
        options = ServiceOptions(host=HOST, port=self._port, auth=False, drain_seconds=1.0)
        server = HttpServer(self.asgi, options, tls=None)
        serving = asyncio.create_task(server.serve(sockets=[self._listener]), name="studio")
        stopping = asyncio.create_task(self._closing.wait(), name="stop")
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            await serving
        finally:
            stopping.cancel()
            serving.cancel()
            await asyncio.gather(serving, stopping, return_exceptions=True)
            self._listener.close()
