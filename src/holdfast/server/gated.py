"""Serves ASGI apps behind the gate of the service: API keys, limits, health and metrics."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import replace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from holdfast.server.caller import CALLER, Caller, Doors
from holdfast.server.connections import HttpServer
from holdfast.server.gate import Gate
from holdfast.server.health import health_routes, metrics_endpoint
from holdfast.server.limits import KeyLimits
from holdfast.server.loop_shares import LoopShares
from holdfast.server.metrics import Metrics
from holdfast.server.options import ServiceOptions
from holdfast.server.service import listening, no_route
from holdfast.server.tls import tls_context
from holdfast.wiring.state import State


class GatedService:
    """Answers POST requests by path, and ``/health`` and ``/metrics``, until ``stop`` is called.

    ::

        service = GatedService(state, ServiceOptions(port=8001), {"/mcp": app})
        await service.run()
    """

    def __init__(
        self,
        state: State,
        options: ServiceOptions,
        apps: Mapping[str, ASGIApp],
        *,
        listener: socket.socket | None = None,
    ) -> None:
        self._listener = listener or listening(options.host, options.port)
        self.options = replace(options, port=self._listener.getsockname()[1])
        self._closing = asyncio.Event()
        self._doors = Doors(state, auth=options.auth)
        self._tls = tls_context(options)
        metrics = Metrics()
        inner = Starlette(
            routes=[
                *(
                    Route(path, endpoint, methods=["GET"])
                    for path, endpoint in health_routes(state, self._closing, auth=options.auth)
                ),
                Route("/metrics", metrics_endpoint(metrics, state), methods=["GET"]),
                *(Route(path, app, methods=["POST"]) for path, app in apps.items()),
            ],
            exception_handlers={404: no_route, 405: no_route},
        )
        inner.router.redirect_slashes = False
        gate = Gate(
            inner,
            self._doors,
            self.options,
            metrics=metrics,
            limits=KeyLimits(self.options),
            shares=LoopShares(),
        )
        self.asgi: ASGIApp = gate if state.tracing is None else state.tracing.http(gate)

    @property
    def url(self) -> str:
        """The URL of the service for clients."""
        return self.options.public_url_or_default

    def caller(self, request: Request) -> tuple[Caller, State]:
        """Return who sent a request, and the stores of that owner."""
        caller = request.scope[CALLER]
        if not isinstance(caller, Caller):
            raise TypeError("the request did not pass the gate")
        state = self._doors.call(caller, request.headers).state
        return caller, state.for_owner(caller.owner)

    def stop(self) -> None:
        """Stop accepting requests."""
        self._closing.set()

    async def run(self) -> None:
        """Serve until ``stop`` is called; open requests then have ``drain_seconds`` to end."""
        server = HttpServer(self.asgi, self.options, tls=self._tls)
        serving = asyncio.create_task(server.serve(sockets=[self._listener]), name="http")
        stopping = asyncio.create_task(self._closing.wait(), name="stop")
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            await serving
        finally:
            for one in (serving, stopping):
                one.cancel()
            await asyncio.gather(serving, stopping, return_exceptions=True)
            self._listener.close()
