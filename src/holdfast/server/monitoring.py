"""``/health`` and ``/metrics`` of a worker or a consolidator, on a separate port."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from holdfast.runtime.background import Runs
from holdfast.server.caller import CALLER, Caller
from holdfast.server.connections import HttpServer
from holdfast.server.health import health_routes, metrics_endpoint
from holdfast.server.metrics import Metrics
from holdfast.server.options import LOOPBACK_NAMES, ServiceOptions, host_name, is_loopback
from holdfast.server.service import listening
from holdfast.wiring.state import State

_log = logging.getLogger("holdfast.monitoring")
SHUTDOWN_SECONDS = 1
"""How long a scrape in progress may take to end when the process stops."""

_Endpoint = Callable[[Request], Awaitable[Response]]


class Monitored:
    """Runs a worker or consolidator and serves its health and metrics meanwhile, without API keys.

    ::

        monitored = Monitored(worker, state, Metrics(), port=9464)
        await monitored.run()
    """

    def __init__(
        self,
        inner: Runs,
        state: State,
        metrics: Metrics,
        *,
        host: str = "127.0.0.1",
        port: int,
        agents: Sequence[str] | None = None,
    ) -> None:
        self._inner = inner
        self._closing = asyncio.Event()
        self._listener = listening(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._listener.getsockname()[1]}"
        self._asgi = Starlette(
            routes=[
                Route(path, _guarded(endpoint, host), methods=["GET"])
                for path, endpoint in (
                    *health_routes(state, self._closing),
                    ("/metrics", metrics_endpoint(metrics, state, agents)),
                )
            ]
        )

    def stop(self) -> None:
        """Start to drain; ``/health`` returns 503 from now on."""
        self._closing.set()
        self._inner.stop()

    async def run(self) -> None:
        """Run until ``stop`` is called."""
        server = HttpServer(self._asgi, ServiceOptions(drain_seconds=SHUTDOWN_SECONDS))
        _log.info("metrics and health on %s", self.url)
        jobs = [
            asyncio.create_task(self._inner.run(), name="run"),
            asyncio.create_task(server.serve(sockets=[self._listener]), name="monitoring"),
        ]
        try:
            # If one of them ends before stop(), the other is ended too.
            await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            server.should_exit = True
            await asyncio.wait(jobs)
            for job in jobs:
                job.result()
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            self._listener.close()


def _guarded(endpoint: _Endpoint, host: str) -> _Endpoint:
    """On loopback, refuse a ``Host`` that does not name this machine, against DNS rebinding."""

    async def guarded(request: Request) -> Response:
        name = host_name(request.headers.get("host", ""))
        if is_loopback(host) and name not in {*LOOPBACK_NAMES, host.lower(), f"[{host.lower()}]"}:
            return PlainTextResponse("ask by the name of this machine\n", status_code=421)
        # Every client that can connect to the port may read everything: there are no keys here.
        request.scope[CALLER] = Caller("", "")
        return await endpoint(request)

    return guarded
