"""What an agent finds when it wakes up, read at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.kernel.storage.agent_memory import Hydrated
from holdfast.kernel.storage.episodes import Event, Recalled
from holdfast.kernel.storage.memory import StateSnapshot
from holdfast.kernel.storage.wake import Wake, WakeStatus


async def hydrate(
    *,
    wake: Awaitable[Wake],
    state: Awaitable[StateSnapshot],
    recent: Callable[[Wake | None], Awaitable[list[Event]]],
    recall: Awaitable[list[Recalled]] | None,
    across: bool,
    brings_events: bool,
) -> Hydrated:
    """Do all reads at once, and put together what they say.

    ``across``: the events are of all sessions, so that the agent may be known where the session
    that is its own is not. ``brings_events``: the wake reads the newest events, and ``recent`` is
    asked what to make of it. ::

        woken = await hydrate(wake=…, state=…, recent=…, recall=None, across=False, …)
    """

    async def woken() -> tuple[Wake, list[Event]]:
        if brings_events:
            found = await wake
            return found, await recent(found)
        found, events = await asyncio.gather(wake, recent(None))
        return found, events

    (found, events), snapshot, hits = await asyncio.gather(woken(), state, recall or _nothing())
    status = found.status
    if across and status is WakeStatus.NEW and events:
        status = WakeStatus.WARM
    return Hydrated(
        status,
        state=snapshot.state,
        version=snapshot.version,
        recent=events,
        recalled=hits,
        gaps=found.gaps,
        degraded=next((hit.degraded for hit in hits if hit.degraded), ""),
    )


async def _nothing() -> list[Recalled]:
    return []
