"""Hydration: reads concurrently what an agent needs to resume."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.values.events import Event, Recalled
from holdfast.values.memory import Hydrated
from holdfast.values.states import StateSnapshot
from holdfast.values.wakes import Wake, WakeStatus


async def hydrate(
    *,
    wake: Awaitable[Wake],
    sessions: Awaitable[Wake | None] | None,
    state: Callable[[], Awaitable[StateSnapshot]],
    recent: Callable[[Wake | None], Awaitable[list[Event]]],
    recall: Awaitable[list[Recalled]] | None,
    brings: bool,
) -> Hydrated:
    """Run all reads concurrently, and return their results as one ``Hydrated``.

    ``sessions`` is given if the events are those of all sessions: it returns the status of all of
    them, since an agent may be known although its own session is new. ``brings`` is whether
    ``wake`` also returns the newest events and the state; if so, its result is passed to
    ``recent``. ::

        woken = await hydrate(wake=…, state=…, recent=…, recall=None, sessions=None, …)
    """

    async def woken() -> tuple[Wake, list[Event], StateSnapshot]:
        if not brings:
            found, events, kept = await asyncio.gather(wake, recent(None), state())
            return found, events, kept
        if sessions is not None:
            found, events = await asyncio.gather(wake, recent(None))
        else:
            found = await wake
            events = await recent(found)
        return found, events, found.state or await state()

    (found, events, snapshot), all_sessions, hits = await asyncio.gather(
        woken(), sessions or _none(), recall or _nothing()
    )
    status, gaps, degraded = found.status, found.gaps, found.degraded
    if all_sessions is not None:
        status = _worse(status, all_sessions.status)
        gaps = all_sessions.gaps or gaps
        degraded = degraded or all_sessions.degraded
    if sessions is not None and status is WakeStatus.NEW and events:
        status = WakeStatus.WARM
    problems = (
        degraded,
        snapshot.degraded,
        next((hit.degraded for hit in hits if hit.degraded), ""),
    )
    return Hydrated(
        status,
        state=snapshot.state,
        version=snapshot.version,
        recent=events,
        recalled=hits,
        gaps=gaps,
        state_as_of=snapshot.as_of,
        degraded="; ".join(filter(None, problems)),
    )


def _worse(own: WakeStatus, others: WakeStatus) -> WakeStatus:
    """Return the worse status, of the agent's own session or of its other sessions."""
    for status in (WakeStatus.GAP, WakeStatus.RESTORED):
        if status in {own, others}:
            return status
    return own


async def _none() -> None:
    return None


async def _nothing() -> list[Recalled]:
    return []
