"""Sessions: the log of a session, at any event, with its working state and its tasks."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.studio.screens.screen import Screen
from holdfast.studio.screens.search import found_or_none
from holdfast.studio.screens.session_log import WINDOW, LogPart, delete_event, read_part
from holdfast.studio.screens.session_rows import rows_of
from holdfast.studio.screens.session_state import read_state
from holdfast.values.errors import InvalidInputError, NotFoundError, VersionConflictError
from holdfast.values.event_text import event_text
from holdfast.values.identity import ALL_AGENTS

SHOWN = 50


async def sessions(desk: Desk, request: Request) -> Response:
    """Show the sessions of all agents, or of one, the last active first."""
    query = request.query_params
    if query.get("id"):
        return RedirectResponse(_path(request, query["id"]), 303)
    words = query.get("q", "").strip()
    if words:
        return await _with_words(desk, request, words)
    found = await desk.memory_state(request).episodes.list_sessions(
        query.get("agent") or ALL_AGENTS,
        limit=SHOWN,
        cursor=query.get("cursor") or None,
        by="last_active_at",
    )
    more = found[-1].cursor if len(found) == SHOWN else ""
    kept = [(name, value) for name, value in query.multi_items() if name != "cursor"]
    return desk.page(
        request,
        "sessions.html",
        sessions=found,
        query=query,
        agents=await desk.agents(request),
        owners=await desk.owners(request),
        said={},
        next=urlencode([*kept, ("cursor", more)]) if more else "",
    )


async def _with_words(desk: Desk, request: Request, words: str) -> Response:
    """Show the session with this id, and those in which something with these words was said."""
    episodes, query = desk.memory_state(request).episodes, request.query_params
    known = await found_or_none(episodes.get_session(words))
    found = {} if known is None else {known.id: known}
    said: dict[str, str] = {}
    agent = query.get("agent") or ALL_AGENTS
    for hit in await found_or_none(episodes.recall(agent, words, limit=SHOWN)) or ():
        key = hit.event.session_id
        said.setdefault(key, event_text(hit.event.type, hit.event.payload))
        if key not in found and (one := await episodes.get_session(key)) is not None:
            found[key] = one
    return desk.page(
        request,
        "sessions.html",
        sessions=list(found.values()),
        query=query,
        agents=await desk.agents(request),
        owners=await desk.owners(request),
        said=said,
        next="",
    )


async def session(desk: Desk, request: Request) -> Response:
    """Show the newest events of a session's log, or those around the number ``?at=``."""
    key, query = request.path_params["id"], request.query_params
    state = desk.memory_state(request)
    known = await state.episodes.get_session(key)
    part = await read_part(
        state.episodes, key, _number(query.get("at", "").rpartition(".")[2]), query.get("type", "")
    )
    then = await read_state(state.short_term, key, _moment(part))
    # The context of a task has the id of its session; a task alone makes no session record.
    tasks = await state.tasks.list(session_id=key, limit=20, first_message=True)
    shown = seen_tasks(desk.session(request), tasks.tasks)
    if known is None and not part.last and not then.snapshot.version and not shown:
        raise NotFoundError("session", key)
    return desk.page(
        request,
        "session.html",
        id=key,
        session_of=known,
        part=part,
        rows=rows_of(part.events),
        full=part.last > WINDOW,
        types=sorted({event.type for event in part.events}),
        chosen=query.get("type", ""),
        then=then,
        tasks=shown,
    )


async def fork(desk: Desk, request: Request) -> Response:
    """Copy the log up to a number, and the state at that time, to a new session, and show it.

    A form that is sent twice makes one fork. If the process dies after it has copied the log, send
    the form again to copy the state.
    """
    key, form = request.path_params["id"], desk.form(request)
    into, at = form.get("into", "").strip(), _number(form.get("at", ""))
    if at is None:
        raise InvalidInputError("at", "must be the number of an event")
    state = desk.memory_state(request)
    part = await read_part(state.episodes, key, at)
    then = await read_state(state.short_term, key, _moment(part))
    made = await state.episodes.fork(key, into, at=at)
    if then.is_known and then.snapshot.state and not (await state.short_term.get_state(made.id)):
        # Sent twice, or written to since: the state of the fork stays as it is.
        with suppress(VersionConflictError):
            await state.short_term.set_state(made.id, then.snapshot.state, expected_version=0)
    return RedirectResponse(_path(request, made.id), 303)


async def forget(desk: Desk, request: Request) -> Response:
    """Delete one event of the log."""
    key, form = request.path_params["id"], desk.form(request)
    await delete_event(desk.memory_state(request), key, form.get("event", ""))
    return back(form, _path(request, key))


async def end(desk: Desk, request: Request) -> Response:
    """End a session."""
    key = request.path_params["id"]
    await desk.memory_state(request).episodes.end_session(key)
    return back(desk.form(request), _path(request, key))


async def erase(desk: Desk, request: Request) -> Response:
    """Delete a session with its log and its working state; the typed id confirms it."""
    key, form = request.path_params["id"], desk.form(request)
    if form.get("confirm", "") != key:
        raise InvalidInputError("confirm", "must be the id of the session")
    state = desk.memory_state(request)
    await state.episodes.delete_session(key)
    await state.short_term.clear(key)
    return RedirectResponse("/studio/sessions", 303)


def _path(request: Request, session_id: str) -> str:
    owner = request.query_params.get("owner", "")
    path = f"/studio/sessions/{quote(session_id, safe='')}"
    return f"{path}?{urlencode({'owner': owner})}" if owner else path


def _moment(part: LogPart) -> datetime | None:
    """Return the time of the next event, up to which writes count; ``None`` at the newest event."""
    if part.at >= part.last:
        return None
    later = [event.occurred_at for event in part.events if event.seq > part.at]
    earlier = [event.occurred_at for event in part.events if event.seq <= part.at]
    return later[0] if later else max(earlier, default=None)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


LIST = Screen("/studio/sessions", sessions)
SCREEN = Screen(
    "/studio/sessions/{id:path}",
    session,
    {"fork": fork, "end": end, "erase": erase, "forget": forget},
)
