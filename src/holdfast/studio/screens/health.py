"""Health: engines with latency, durability and warnings, and the backlogs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.server.metric_names import METRICS
from holdfast.studio.desk import Desk
from holdfast.studio.samples import has_hybrid
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import NotSupportedError
from holdfast.wiring.state import State

COUNTED = 100
"""How many tasks of each state are counted for the backlog; the page shows none of these counts."""


async def health(desk: Desk, request: Request) -> Response:
    """Show the engines and the backlogs."""
    state = desk.state(request)
    found = await state.ops.health()
    waits: dict[str, int | float] = {}
    if has_hybrid(state):
        waits["events in Redis, not yet in Postgres"] = await state.ops.pending_events()
    waits["events not yet in the index of words"] = await state.ops.unindexed_events()
    if desk.session(request).local:
        # These count all tenants, which only the operator of this machine may see.
        waits |= await _of_all_tenants(state)
    workers = await state.tasks.workers()
    return desk.page(
        request,
        "health.html",
        health=found,
        waits=waits,
        workers=workers,
        charts=desk.samples(request).charts(),
    )


async def _of_all_tenants(state: State) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    try:
        backlog = await state.ops.backlog(limit=COUNTED)
        found["seconds that the oldest task is due and unclaimed"] = backlog.oldest_due_seconds
        found["events that wait for an embedding, at most"] = backlog.unembedded_events
        found["dead letters"] = backlog.dead_letters
        for name, value in await state.ops.hybrid.samples():
            found[METRICS[name].about] = round(value, 3)
    except NotSupportedError:
        # In memory nothing waits; only Redis in front of Postgres is consolidated.
        return found
    return found


SCREEN = Screen("/studio/health", health, operators=True)
