"""Health: engines with latency, durability and warnings, and the backlogs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk
from holdfast.studio.screens.screen import Screen


async def health(desk: Desk, request: Request) -> Response:
    """Show the engines and the backlogs."""
    state = desk.state(request)
    found = await state.ops.health()
    waits = {
        "events in Redis, not yet in Postgres": await state.ops.pending_events(),
        "events not yet in the index of words": await state.ops.unindexed_events(),
    }
    workers = await state.tasks.workers()
    return desk.page(
        request,
        "health.html",
        health=found,
        waits=waits,
        workers=workers,
        charts=desk.samples(request).charts(),
    )


SCREEN = Screen("/studio/health", health, operators=True)
