"""Sessions: the log of all agents in one, its working state, and the tasks of its context."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.identity import ALL_AGENTS

SHOWN = 50
WINDOW = 100


async def sessions(desk: Desk, request: Request) -> Response:
    """Show the sessions of all agents, or of one, the last active first."""
    query = request.query_params
    if query.get("id"):
        owned = {"owner": query["owner"]} if query.get("owner") else {}
        path = f"/studio/sessions/{quote(query['id'], safe='')}"
        return RedirectResponse(f"{path}?{urlencode(owned)}" if owned else path, 303)
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
        next=urlencode([*kept, ("cursor", more)]) if more else "",
    )


async def session(desk: Desk, request: Request) -> Response:
    """Show a part of a session's log: the newest events, or those after ``?after=``."""
    key, query = request.path_params["id"], request.query_params
    state = desk.memory_state(request)
    known = await state.episodes.get_session(key)
    types = [query["type"]] if query.get("type") else None
    events = await state.episodes.recent(ALL_AGENTS, session_id=key, limit=WINDOW, types=types)
    snapshot = await state.short_term.snapshot(key)
    if known is None and not events and not snapshot.version:
        raise NotFoundError("session", key)
    # The context of a task has the id of its session.
    tasks = await state.tasks.list(context_id=key, limit=20, first_message=True)
    return desk.page(
        request,
        "session.html",
        id=key,
        session_of=known,
        events=events,
        full=len(events) == WINDOW,
        window=WINDOW,
        types=sorted({event.type for event in events}),
        chosen=query.get("type", ""),
        snapshot=snapshot,
        tasks=seen_tasks(desk.session(request), tasks.tasks),
    )


async def end(desk: Desk, request: Request) -> Response:
    """End a session."""
    key = request.path_params["id"]
    await desk.memory_state(request).episodes.end_session(key)
    return back(desk.form(request), f"/studio/sessions/{quote(key, safe='')}")


async def erase(desk: Desk, request: Request) -> Response:
    """Delete a session with its log and its working state; the id typed confirms it."""
    key, form = request.path_params["id"], desk.form(request)
    if form.get("confirm", "") != key:
        raise InvalidInputError("confirm", "must be the id of the session")
    state = desk.memory_state(request)
    await state.episodes.delete_session(key)
    await state.short_term.clear(key)
    return RedirectResponse("/studio/sessions", 303)


LIST = Screen("/studio/sessions", sessions)
SCREEN = Screen("/studio/sessions/{id:path}", session, {"end": end, "erase": erase})
