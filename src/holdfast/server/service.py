"""The service: routes, a worker, push notifications, and an orderly shutdown."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from holdfast.runtime.app import App
from holdfast.runtime.worker import Worker
from holdfast.server.addresses import AddressGuard
from holdfast.server.caller import Doors
from holdfast.server.card import Cards, card_routes
from holdfast.server.connections import HttpServer
from holdfast.server.errors import WORDS
from holdfast.server.files import FileLinks, download
from holdfast.server.gate import Gate
from holdfast.server.handler import LedgerRequestHandler
from holdfast.server.health import health_routes, metrics_endpoint
from holdfast.server.intake import Intake
from holdfast.server.key_watch import KeyWatch
from holdfast.server.limits import KeyLimits
from holdfast.server.loop_shares import LoopShares
from holdfast.server.metrics import Metrics
from holdfast.server.mounts import Mounts
from holdfast.server.options import ServiceOptions
from holdfast.server.push import Deliverer
from holdfast.server.routes import a2a_routes, with_call
from holdfast.server.streams import Timeline
from holdfast.server.tls import tls_context
from holdfast.values.errors import ConfigError, MissingExtraError
from holdfast.wiring.state import State

_log = logging.getLogger("holdfast.server")
WORKER_POLL_SECONDS = 0.25
"""Poll interval, shorter than a worker's default: a client waits, and a claim skips locked rows."""


class Service:
    """Serves an app over HTTP, on the stores of a ``State``. Any number of instances may run.

    An instance keeps no state of tasks. ``mounts`` are other apps by their path: they check their
    callers themselves, with the same ``limits`` and ``shares`` if these are given. ``closing`` is
    set when the service stops.

    ::

        service = Service(app, state, ServiceOptions(port=8000))
        loop.add_signal_handler(signal.SIGTERM, service.stop)
        await service.run()
    """

    def __init__(
        self,
        app: App,
        state: State,
        options: ServiceOptions | None = None,
        *,
        workers: int = 10,
        listener: socket.socket | None = None,
        delivery_poll_seconds: float = 1.0,
        mounts: Mapping[str, ASGIApp] | None = None,
        closing: asyncio.Event | None = None,
        limits: KeyLimits | None = None,
        shares: LoopShares | None = None,
    ) -> None:
        chosen = options or ServiceOptions()
        self._listener = listener or listening(chosen.host, chosen.port)
        self.options = replace(chosen, port=self._listener.getsockname()[1])
        if chosen.grpc_port is not None and find_spec("grpc") is None:
            raise MissingExtraError("gRPC", "grpc")
        self._tls = tls_context(chosen)
        self._server: HttpServer | None = None
        self.metrics = Metrics()
        self._closing = closing or asyncio.Event()
        files = FileLinks(self.options.public_url_or_default)
        timeline = Timeline(files, self._closing)
        guard = AddressGuard(allow_private=chosen.push_allow_private)
        self._doors = Doors(state, auth=chosen.auth)
        self._limits = limits or KeyLimits(self.options)
        self._shares = shares or LoopShares()
        self._tracing = state.tracing
        self._cards = Cards.of(app, self.options)
        self._handler = LedgerRequestHandler(
            Intake(app, guard, chosen),
            timeline,
            files,
            guard,
            cards=self._cards,
            metrics=self.metrics,
            options=self.options,
            limits=self._limits,
            watch=KeyWatch(self._doors, seconds=self.options.key_check_seconds),
        )
        self._deliverer = Deliverer(
            state,
            timeline,
            guard,
            metrics=self.metrics,
            options=self.options,
            poll_seconds=delivery_poll_seconds,
        )
        self._worker = (
            Worker(
                app,
                state,
                concurrency=workers,
                poll_seconds=WORKER_POLL_SECONDS,
                watch=self.metrics.count_run,
            )
            if workers
            else None
        )
        if self._worker is not None:
            self.metrics.running.set_function(lambda: self._running)
        gate = self._assembled(app, state)
        asgi: ASGIApp = Mounts(gate, mounts) if mounts else gate
        self.asgi: ASGIApp = asgi if state.tracing is None else state.tracing.http(asgi)

    @property
    def url(self) -> str:
        """The URL of the service for clients."""
        return self.options.public_url_or_default

    @property
    def _running(self) -> float:
        return float(self._worker.running) if self._worker else 0.0

    def stop(self) -> None:
        """Stop accepting requests, end streams, drain the worker."""
        self._closing.set()
        self._deliverer.stop()
        if self._worker is not None:
            self._worker.stop()

    async def run(self) -> None:
        """Serve until ``stop`` is called; open requests then have ``drain_seconds`` to end."""
        server = self._server = HttpServer(self.asgi, self.options, tls=self._tls)
        jobs = [
            asyncio.create_task(server.serve(sockets=[self._listener]), name="http"),
            asyncio.create_task(self._deliverer.run(), name="deliveries"),
        ]
        if self._worker is not None:
            jobs.append(asyncio.create_task(self._worker.run(), name="worker"))
        stopping = asyncio.create_task(self._closing.wait(), name="stop")
        try:
            async with self._grpc():
                # If one job ends before stop(), the others are stopped too.
                await asyncio.wait([*jobs, stopping], return_when=asyncio.FIRST_COMPLETED)
                self.stop()
                server.should_exit = True
                await asyncio.wait(jobs)
            for job in jobs:
                job.result()
        finally:
            for one in [*jobs, stopping]:
                one.cancel()
            await asyncio.gather(*jobs, stopping, return_exceptions=True)
            self._listener.close()

    @asynccontextmanager
    async def _grpc(self) -> AsyncIterator[None]:
        if self.options.grpc_port is None:
            yield
            return
        # Imported here: gRPC is a separate extra.
        from holdfast.server.grpc_service import grpc_server  # noqa: PLC0415

        server = grpc_server(
            *(self._handler, self._doors, self.options),
            limits=self._limits,
            shares=self._shares,
            tracing=self._tracing,
        )
        await server.start()
        try:
            yield
        finally:
            await server.stop(self.options.drain_seconds)

    def _assembled(self, app: App, state: State) -> Gate:
        health = health_routes(state, self._closing, auth=self.options.auth)
        agents = [str(agent) for agent in app.agents]
        routes = [
            *card_routes(self._cards.public, self.options),
            *(Route(path, endpoint, methods=["GET"]) for path, endpoint in health),
            Route("/metrics", metrics_endpoint(self.metrics, state, agents), methods=["GET"]),
            Route("/blobs/{ref}", with_call(download, self._doors), methods=["GET"]),
            *a2a_routes(self._handler, self._doors, self._shares),
        ]
        inner = Starlette(routes=routes, exception_handlers={404: no_route, 405: no_route})
        inner.router.redirect_slashes = False
        return Gate(
            inner,
            self._doors,
            self.options,
            metrics=self.metrics,
            limits=self._limits,
            shares=self._shares,
        )


async def no_route(_request: Request, error: Exception) -> Response:
    """Return the response for a path or a method that the service does not have.

    ::

        Starlette(routes=routes, exception_handlers={404: no_route, 405: no_route})
    """
    code = error.status_code if isinstance(error, HTTPException) else 404
    text = "there is no such path" if code == 404 else "this path has no such method"
    headers = error.headers if isinstance(error, HTTPException) else None
    body = {"error": {"code": code, "status": WORDS[code], "message": text}}
    return JSONResponse(body, status_code=code, headers=headers)


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 means any free port.

    >>> with listening("127.0.0.1", 0) as one:
    ...     one.getsockname()[1] > 0
    True
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    # Connections inherit TCP_NODELAY from the listener. asyncio sets it only on a socket that was
    # created with its protocol number. Without it a response waits up to 40 ms for the client's
    # acknowledgement.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found
