"""What the palette finds while somebody types: agents, sessions and tasks, as JSON."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from holdfast.studio.desk import Desk
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.studio.screens.screen import Screen
from holdfast.studio.screens.search import found_or_none
from holdfast.studio.screens.task_actions import task_path
from holdfast.studio.visible import visible
from holdfast.values.formats import short
from holdfast.values.identity import ALL_AGENTS

SHOWN = 6
"""Maximum number of results of each kind."""

NEWEST = 100
"""How many of the newest tasks and sessions are compared with the words."""

COUNTED = 1_000
"""How many tasks are looked at for the names of their agents."""


async def palette(desk: Desk, request: Request) -> Response:
    """Return agents, sessions and tasks whose name, id or first message has the words."""
    words = request.query_params.get("q", "").strip().casefold()
    found: list[dict[str, str]] = []
    if words:
        state = desk.memory_state(request)
        agents = [str(one) for one in await desk.agents(request)]
        if desk.session(request).operator:
            # An owner does not see child tasks, and so not their agents.
            agents += (await desk.state(request).tasks.counts("agent", limit=COUNTED)).counts
            agents = sorted(set(agents))
        for name in [one for one in agents if words in one.casefold()][:SHOWN]:
            path = quote(name, safe="")
            found.append(_row("Agent", name, f"/studio/tasks?agent={path}", "tasks"))
            found.append(_row("Agent", name, f"/studio/facts?agent={path}", "facts"))
        sessions = await found_or_none(
            state.episodes.list_sessions(ALL_AGENTS, limit=NEWEST, by="last_active_at")
        )
        ids = [one.id for one in sessions or () if words in one.id.casefold()][:SHOWN]
        found += [_row("Session", one, f"/studio/sessions/{quote(one, safe='')}") for one in ids]
        page = await desk.state(request).tasks.list(limit=NEWEST, first_message=True)
        shown = 0
        for task in seen_tasks(desk.session(request), page.tasks):
            text = task.first_message.text if task.first_message else ""
            if shown < SHOWN and (words in text.casefold() or task.id.startswith(words)):
                shown += 1
                found.append(_row("Task", text or task.id, task_path(task.id), str(task.agent)))
    return JSONResponse(found)


def _row(kind: str, text: str, href: str, note: str = "") -> dict[str, str]:
    return {
        "kind": kind,
        "text": visible(short(text, 70)),
        "href": href,
        "note": visible(short(note, 30)),
    }


SCREEN = Screen("/studio/palette", palette)
