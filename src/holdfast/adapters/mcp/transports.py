"""The two ways to reach a memory server: standard input and output, and HTTP."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import (
    StreamableHTTPASGIApp,
    StreamableHTTPSessionManager,
)
from mcp.server.transport_security import TransportSecuritySettings

from holdfast.adapters.mcp.graph import MemoryGraph
from holdfast.wiring.state import State

_GRAPHS = 64
"""How many graphs a server over HTTP keeps in memory between calls."""


class StdioServer:
    """Serves one client on standard input and output, until it closes them or ``stop`` is called.

    ::

        await StdioServer(memory_server(lambda request: caller, subscriptions=True)).run()
    """

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._closing = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    @property
    def waits_for_input(self) -> bool:
        """Whether the server was stopped while a thread still reads standard input.

        Nothing can interrupt that thread. A process with such a thread ends only by ``os._exit``.
        """
        return self._serving is not None and not self._serving.done()

    def stop(self) -> None:
        """Answer no more requests."""
        self._closing.set()

    async def run(self) -> None:
        """Answer requests until the client closes the connection."""
        self._serving = asyncio.create_task(self._serve(), name="mcp")
        stopping = asyncio.create_task(self._closing.wait(), name="stop")
        await asyncio.wait([self._serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if self._serving.done():
            self._serving.result()

    async def _serve(self) -> None:
        async with stdio_server() as (reading, writing):
            options = self._server.create_initialization_options()
            await self._server.run(reading, writing, options)


class HttpEndpoint:
    """An ASGI app that answers MCP over streamable HTTP, without sessions, while it runs.

    Each request is complete in itself, so any instance can answer it, and no session of one API
    key can be used with another. ``local`` refuses requests that a web page in a browser sends. ::

        endpoint = HttpEndpoint(server, local=True)
        service = GatedService(state, options, {"/mcp": endpoint})
        async with endpoint.running():
            await service.run()
    """

    def __init__(self, server: Server[Any], *, local: bool) -> None:
        names = ("127.0.0.1", "localhost", "[::1]")
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=local,
            allowed_hosts=[f"{name}:*" for name in names],
            allowed_origins=[f"http://{name}:*" for name in names],
        )
        self._manager = StreamableHTTPSessionManager(
            app=server, json_response=True, stateless=True, security_settings=security
        )
        self._app = StreamableHTTPASGIApp(self._manager)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        await self._app(scope, receive, send)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Answer requests inside the ``async with`` block."""
        running: AbstractAsyncContextManager[None] = self._manager.run()
        return running


class Graphs:
    """The graphs of recent owners, kept in memory: an unchanged graph is not read again.

    ::

        graph = Graphs().of(state.for_owner("ana"))
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], MemoryGraph] = OrderedDict()

    def of(self, view: State) -> MemoryGraph:
        """Return the graph of a view's owner."""
        key = (view.tenant, view.owner)
        found = self._kept.pop(key, None) or MemoryGraph(view.items)
        self._kept[key] = found
        if len(self._kept) > _GRAPHS:
            self._kept.popitem(last=False)
        return found
