"""The event stream of a browser: the ids of changed tasks. The page then reloads its content."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress

from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk
from holdfast.studio.screens.inbox import WAITING
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import HoldfastError

WATCHED = 100
"""How many of the last changed tasks are checked for changes."""

PAUSE_SECONDS = 0.5
MOST_STREAMS = 8
"""Maximum open streams of an API key, or of a session without a key; browser tabs share one."""

CHECKED_AFTER = 10
"""After how many polls it is checked whether the session is still valid."""

_streams: Counter[str] = Counter()


async def live(desk: Desk, request: Request) -> Response:
    """Send the ids of tasks as they change, until the browser leaves or its session ends."""
    session = desk.session(request)
    who = session.key_id or session.id
    if _streams[who] >= MOST_STREAMS:
        return Response("too many streams of one session\n", 429)
    # Counted here: many requests may come before the first of them is answered.
    _streams[who] += 1
    return EventSourceResponse(_counted(who, _changes(desk, request)), ping=15)


async def _counted(
    who: str, changes: AsyncIterator[dict[str, str]]
) -> AsyncIterator[dict[str, str]]:
    try:
        async for one in changes:
            yield one
    finally:
        _streams[who] -= 1
        if not _streams[who]:
            del _streams[who]


async def _changes(desk: Desk, request: Request) -> AsyncIterator[dict[str, str]]:
    state, session = desk.state(request), desk.session(request)
    known: dict[str, int] | None = None
    looks = 0
    while not desk.closing.is_set():
        looks += 1
        try:
            if looks % CHECKED_AFTER == 0 and not await desk.valid(session):
                return
            now = await state.tasks.versions(limit=WATCHED)
            before = {} if known is None else known
            changed = [task for task, version in now.items() if before.get(task) != version]
            waiting = await _waiting(desk, request) if changed or known is None else 0
        except HoldfastError:
            # The page shows the error when it is read; the stream goes on.
            yield {"event": "lost", "data": "{}"}
        else:
            if known is None:
                yield {"event": "ready", "data": json.dumps({"waiting": waiting})}
            elif changed:
                news = {"tasks": changed, "waiting": waiting}
                yield {"event": "changed", "data": json.dumps(news)}
            known = now
        with suppress(TimeoutError):
            await asyncio.wait_for(desk.closing.wait(), PAUSE_SECONDS)


async def _waiting(desk: Desk, request: Request) -> int:
    """Count the tasks that wait for a person, up to ``WATCHED``."""
    page = await desk.state(request).tasks.list(
        states=WAITING, limit=WATCHED, children=desk.session(request).operator
    )
    return len(page.tasks)


SCREEN = Screen("/studio/live", live)
