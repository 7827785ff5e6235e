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
    state: Callable[[], Awaitable[StateSnapshot]],
    recent: Callable[[Wake | None], Awaitable[list[Event]]],
    recall: Awaitable[list[Recalled]] | None,
    across: bool,
    brings: bool,
) -> Hydrated:
    """Do all reads at once, and put together what they say.

    ``across``: the events are of all sessions, so that the agent may be known where the session
    that is its own is not. ``brings``: the wake reads the newest events and the state, and
    ``recent`` is asked what to make of it. ::

        woken = await hydrate(wake=…, state=…, recent=…, recall=None, across=False, …)
    """

    async def woken() -> tuple[Wake, list[Event], StateSnapshot]:
        if not brings:
            found, events, kept = await asyncio.gather(wake, recent(None), state())
            return found, events, kept
        if across:
            found, events = await asyncio.gather(wake, recent(None))
        else:
            found = await wake
            events = await recent(found)
        return found, events, found.state or await state()

    (found, events, snapshot), hits = await asyncio.gather(woken(), recall or _nothing())
    status = found.status
    if across and status is WakeStatus.NEW and events:
        status = WakeStatus.WARM
    problems = (
        found.degraded,
        snapshot.degraded,
        next((hit.degraded for hit in hits if hit.degraded), ""),
    )
    return Hydrated(
        status,
        state=snapshot.state,
        version=snapshot.version,
        recent=events,
        recalled=hits,
        gaps=found.gaps,
        degraded="; ".join(filter(None, problems)),
    )


async def _nothing() -> list[Recalled]:
    return []
