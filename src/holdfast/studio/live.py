"""The event stream of a browser: which tasks changed. The page is then read again."""

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
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import HoldfastError
from holdfast.wiring.state import State

WATCHED = 100
"""How many of the tasks that changed last are compared."""

PAUSE_SECONDS = 0.5
MOST_STREAMS = 8
"""How many streams one session may have open; its tabs share one."""

_streams: Counter[str] = Counter()


async def live(desk: Desk, request: Request) -> Response:
    """Send the ids of tasks as they change, until the browser leaves."""
    session = desk.session(request)
    if _streams[session.id] >= MOST_STREAMS:
        return Response("too many streams of one session\n", 429)
    changes = _changes(desk.state(request), session.id, desk.closing)
    return EventSourceResponse(changes, ping=15)


async def _changes(
    state: State, session: str, closing: asyncio.Event
) -> AsyncIterator[dict[str, str]]:
    _streams[session] += 1
    known: dict[str, int] | None = None
    try:
        while not closing.is_set():
            try:
                page = await state.tasks.list(limit=WATCHED)
            except HoldfastError:
                # The page shows the error when it is read; the stream goes on.
                yield {"event": "lost", "data": "{}"}
            else:
                now = {task.id: task.version for task in page.tasks}
                if known is None:
                    yield {"event": "ready", "data": "{}"}
                elif changed := [
                    task for task, version in now.items() if known.get(task) != version
                ]:
                    yield {"event": "changed", "data": json.dumps({"tasks": changed})}
                known = now
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), PAUSE_SECONDS)
    finally:
        _streams[session] -= 1
        if not _streams[session]:
            del _streams[session]


SCREEN = Screen("/studio/live", live)
