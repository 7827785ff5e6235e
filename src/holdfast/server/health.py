"""``/health``, ``/health/live`` and ``/metrics``, for load balancers, probes and Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from holdfast.server.caller import CALLER, Caller
from holdfast.server.errors import WORDS
from holdfast.server.figures import Figures
from holdfast.server.metrics import CONTENT_TYPE, Metrics
from holdfast.values.errors import HoldfastError
from holdfast.wiring.health import Health
from holdfast.wiring.state import State

PROBE_SECONDS = 5.0
HEALTH_PATHS = ("/health", "/health/ready", "/health/live")
"""Paths for probes, which need no API key."""


class _Probe:
    """Checks the engines once for all concurrent requests.

    ``/health`` needs no key, and a check is expensive.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._running: asyncio.Task[Health | None] | None = None

    async def result(self) -> Health | None:
        """Return the health of the engines, or ``None`` if they do not answer in time."""
        if self._running is None:
            self._running = asyncio.create_task(self._ask())
            self._running.add_done_callback(self._ended)
        # A client that disconnects must not cancel the check for the others.
        return await asyncio.shield(self._running)

    async def _ask(self) -> Health | None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return await self._state.ops.health()
        except (TimeoutError, HoldfastError):
            return None

    def _ended(self, _task: asyncio.Task[Health | None]) -> None:
        self._running = None


def health_endpoint(
    state: State, closing: asyncio.Event, *, auth: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint for load balancers: 200 if all engines answer, otherwise 503.

    Every client gets the status. The list of engines and their health is for operators only, or for
    every client if the service runs without auth.
    """
    probe = _Probe(state)

    async def health(request: Request) -> Response:
        if closing.is_set():
            return JSONResponse({"status": "stopping"}, status_code=503)
        found = await probe.result()
        if found is None:
            return JSONResponse({"status": "down"}, status_code=503)
        up = found.status != "down"
        caller: Caller | None = request.scope.get(CALLER)
        if not (not auth if caller is None else caller.operates):
            # A degraded engine is not shown either.
            return JSONResponse({"status": "ok" if up else "down"}, status_code=200 if up else 503)
        engines = [
            {
                "engine": one.engine,
                "status": one.status,
                "serves": list(one.serves),
                "latencySeconds": round(one.latency_seconds, 6),
                "detail": one.detail,
                "durability": one.durability,
            }
            for one in found.engines
        ]
        shown = {"status": found.status, "engines": engines}
        return JSONResponse(shown, status_code=200 if up else 503)

    return health


async def live(_request: Request) -> Response:
    """Answer 200 while the event loop of the process runs, whatever its engines do."""
    return JSONResponse({"status": "ok"})


def health_routes(
    state: State, closing: asyncio.Event, *, auth: bool = True
) -> list[tuple[str, Callable[[Request], Awaitable[Response]]]]:
    """Return the endpoints for probes, by path: ``/health`` and ``/health/ready`` are the same."""
    ready = health_endpoint(state, closing, auth=auth)
    return list(zip(HEALTH_PATHS, (ready, ready, live), strict=True))


def metrics_endpoint(
    metrics: Metrics, state: State, agents: Sequence[str] | None = None
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint with the metrics of this process and of the engines.

    ``agents`` are the agents of the app: each has a label value of its own.
    """
    from_engines = Figures(state, agents)

    async def figures(request: Request) -> Response:
        caller: Caller = request.scope[CALLER]
        if not caller.operates:
            why = "/metrics is of all tenants: it needs an API key of the scope operator"
            error = {"code": 403, "status": WORDS[403], "message": why}
            return JSONResponse({"error": error}, status_code=403)
        text = metrics.text() + await from_engines.text()
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    return figures
