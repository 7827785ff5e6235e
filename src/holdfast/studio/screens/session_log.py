"""A part of a session's log: the events around a number, and no more bytes than a page shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.studio.pages import json_size
from holdfast.values.errors import NotFoundError
from holdfast.values.events import Event
from holdfast.values.identity import ALL_AGENTS, AgentId
from holdfast.wiring.state import State

WINDOW = 100
"""Maximum number of events on a page."""

CHUNK = 25
"""How many events are read at once: reading stops when a page has enough bytes."""

MOST_BYTES = 2 * 1024 * 1024
"""Maximum bytes of payloads on a page."""

_EVER = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
_MOST_EPOCHS = 8


@dataclass(frozen=True, slots=True)
class LogPart:
    """The events around one event, the number of that event, and the number of the newest."""

    events: list[Event]
    at: int
    last: int
    left_out: int = 0
    """How many events are shown without their payloads, because these are too large."""


async def read_part(
    episodes: EpisodicMemory, session: str, at: int | None, type_: str = ""
) -> LogPart:
    """Read the newest events of a session, or those around the number ``at``.

    ::

        part = await read_part(state.episodes, "s1", 40)
    """
    newest = await episodes.recent(ALL_AGENTS, session_id=session, limit=1)
    if not newest:
        return LogPart([], 0, 0)
    last, types = newest[0].seq, [type_] if type_ else None
    here = last if at is None else min(max(at, 1), last)
    if types and here == last:
        found = await episodes.recent(ALL_AGENTS, session_id=session, types=types, limit=CHUNK)
        if len(found) == CHUNK and sum(map(_size, found)) < MOST_BYTES // (WINDOW // CHUNK):
            found = await episodes.recent(ALL_AGENTS, session_id=session, types=types, limit=WINDOW)
    else:
        high = min(last, here + WINDOW // 2)
        found = await _read_back(episodes, newest[0], high, types)
    shown, left_out = _within(found)
    return LogPart(shown, here, last, left_out)


async def _read_back(
    episodes: EpisodicMemory, newest: Event, high: int, types: list[str] | None
) -> list[Event]:
    """Read the events up to the number ``high``, in chunks, until a page has enough bytes."""
    found: list[Event] = []
    size, end, epoch = 0, high, newest.epoch
    while end > max(high - WINDOW, 0) and size < MOST_BYTES:
        begin, part = max(end - CHUNK, 0), list[Event]()
        for _ in range(_MOST_EPOCHS):
            cursor = Event(AgentId("", "any"), newest.session_id, "", {}, epoch=epoch, seq=begin)
            page = await episodes.between(
                ALL_AGENTS,
                *_EVER,
                session_id=newest.session_id,
                cursor=cursor.cursor,
                limit=CHUNK,
                types=types,
            )
            part = [one for one in page if begin < one.seq <= end]
            if part or epoch <= 1:
                break
            # The number may be of an earlier epoch.
            epoch -= 1
        found = part + found
        size, end = size + sum(map(_size, part)), begin
    return found


async def read_around(episodes: EpisodicMemory, event: Event, count: int) -> list[Event]:
    """Read the events of a session beside one: up to ``count`` on each side.

    ::

        near = await read_around(state.episodes, hit.event, 3)
    """
    before = replace(event, seq=max(event.seq - count - 1, 0))
    page = await episodes.between(
        ALL_AGENTS,
        *_EVER,
        session_id=event.session_id,
        cursor=before.cursor,
        limit=2 * count + 1,
    )
    return [one for one in page if abs(one.seq - event.seq) <= count]


async def delete_event(state: State, session: str, event: str) -> None:
    """Delete an event of a session. Raises ``NotFoundError`` if there is none.

    ::

        await delete_event(state, "s1", "e1")
    """
    if not await state.episodes.delete_events(session, [event]):
        raise NotFoundError("event", event)


def _within(events: list[Event]) -> tuple[list[Event], int]:
    """Return events without the payloads that do not fit on a page; the newest have priority."""
    left, shown, left_out = MOST_BYTES, list[Event](), 0
    for event in reversed(events):
        size = _size(event)
        fits = size <= left
        left -= size if fits else 0
        left_out += not fits
        shown.append(
            event if fits else replace(event, type=f"{event.type} ({size} bytes)", payload={})
        )
    return shown[::-1], left_out


def _size(event: Event) -> int:
    return json_size(event.payload)
