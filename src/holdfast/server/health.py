"""``/health`` and ``/metrics``: for load balancers and for those who watch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from holdfast.kernel.core.errors import HoldfastError
from holdfast.server.caller import CALLER
from holdfast.server.metrics import CONTENT_TYPE, Metrics
from holdfast.wiring.state import State

PROBE_SECONDS = 5.0


def health_endpoint(
    state: State, closing: asyncio.Event
) -> Callable[[Request], Awaitable[Response]]:
    """Whether to send requests here: 200 when all engines answer, else 503.

    Everybody may know whether an engine is well; what it said, only who has a key.
    """

    async def health(request: Request) -> Response:
        if closing.is_set():
            return JSONResponse({"status": "stopping", "engines": []}, status_code=503)
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                found = await state.health()
        except (TimeoutError, HoldfastError):
            return JSONResponse({"status": "down", "engines": []}, status_code=503)
        known = request.scope.get(CALLER) is not None
        engines = [
            {
                "engine": one.engine,
                "status": one.status,
                "serves": list(one.serves),
                "latencySeconds": round(one.latency_seconds, 6),
            }
            | ({"detail": one.detail, "durability": one.durability} if known else {})
            for one in found.engines
        ]
        code = 503 if found.status == "down" else 200
        return JSONResponse({"status": found.status, "engines": engines}, status_code=code)

    return health


def metrics_endpoint(metrics: Metrics) -> Callable[[Request], Awaitable[Response]]:
    """The figures of this process."""

    async def figures(_request: Request) -> Response:
        return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    return figures
