"""The list of tasks, with counts by state, filters and actions on many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.studio.desk import Desk
from holdfast.studio.notices import PARAMETER, PICKED
from holdfast.studio.screens.answer_form import form_of
from holdfast.studio.screens.inbox import WAITING
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.studio.screens.screen import Screen
from holdfast.studio.screens.task_actions import task_path
from holdfast.studio.screens.tasks_many import (
    ALL,
    FILTERS,
    actions_on,
    asked,
    filters_of,
    picked_of,
)
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.tasks.records import TaskRecord

SHOWN = 50
FLOW = (TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED)
TILES = (
    TaskState.WORKING,
    TaskState.SUBMITTED,
    TaskState.INPUT_REQUIRED,
    TaskState.PAUSED,
    TaskState.COMPLETED,
    TaskState.FAILED,
    TaskState.CANCELED,
)
TOGETHER = {TaskState.INPUT_REQUIRED: (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)}
RARE = tuple(one for one in TaskState if one not in FLOW)
"""States that few tasks are in; the ledger has an index of these tasks."""

COUNTED = 5_000
"""Maximum number of tasks that are counted; if there are more, the page says so."""

COUNTED_OF_FILTER = 1_000
"""The same for a list with a filter: to count one of ten agents reads ten times as many tasks."""

NAMED = 200
"""Maximum number of tasks that are read for the names of agents."""

WAITING_SHOWN = 2
"""How many questions that wait for a person are shown above the list."""


async def tasks(desk: Desk, request: Request) -> Response:
    """Show a page of tasks."""
    query = request.query_params
    ledger = desk.state(request).tasks
    filters = filters_of(desk, request)
    chosen = filters["states"] or []
    found = await ledger.list(
        **filters, limit=SHOWN, cursor=query.get("cursor") or None, first_message=True
    )
    counts = await _counts(ledger, filters)
    capped = bool(counts.least)
    if filters["text"]:
        # To count by words would read every message.
        total, capped = len(found.tasks), bool(found.next_cursor)
    else:
        total = sum(counts.states.get(state, 0) for state in chosen or TaskState)
        capped = bool(counts.least.intersection(chosen or TaskState))
    kept = [
        (name, value)
        for name, value in query.multi_items()
        if name not in {"cursor", PARAMETER, PICKED}
    ]
    filtered = any(name in query for name in FILTERS)
    return desk.page(
        request,
        "tasks.html",
        rows=seen_tasks(desk.session(request), found.tasks),
        total=total,
        capped=capped,
        counts={
            state: sum(counts.states.get(one, 0) for one in TOGETHER.get(state, (state,)))
            for state in TILES
        },
        ended=TERMINAL,
        least=counts.least,
        chosen=chosen,
        query=query,
        filtered=filtered,
        waiting=[] if filtered or "cursor" in query else await _waiting(desk, request),
        form_of=form_of,
        new_id=new_id,
        all_actions=ALL,
        agents=await _agents(ledger),
        next=urlencode([*kept, ("cursor", found.next_cursor)]) if found.next_cursor else "",
        asked=await asked(desk, request, filters),
        picked=set(picked_of(_picked(desk, request))),
    )


def _picked(desk: Desk, request: Request) -> str:
    """Return the tasks that stay chosen: for each of them an action was just refused."""
    if request.method == "POST":
        return desk.form(request).get("tasks", "")
    return request.query_params.get(PICKED, "")


async def _agents(ledger: TaskLedger) -> list[str]:
    """Return agents that have tasks, to choose from."""
    return sorted((await ledger.counts("agent", limit=NAMED)).counts)


async def _waiting(desk: Desk, request: Request) -> list[TaskRecord]:
    """Return the tasks whose questions have waited longest."""
    session = desk.session(request)
    page = await desk.state(request).tasks.list(
        states=WAITING,
        order="oldest",
        limit=WAITING_SHOWN,
        children=session.operator,
        first_message=True,
    )
    return seen_tasks(session, page.tasks)


class _Counts(NamedTuple):
    states: Mapping[str, int]
    least: set[str]
    """The states whose counts are lower bounds."""


async def _counts(ledger: TaskLedger, filters: dict[str, Any]) -> _Counts:
    """Count tasks by state, up to ``COUNTED``; tasks in rare states are counted separately."""
    where = {**filters, "states": None, "text": None}
    limit = COUNTED_OF_FILTER if any(where.values()) else COUNTED
    found = await ledger.counts("state", limit=limit, **where)
    if not found.capped:
        return _Counts(found.counts, set())
    rare = await ledger.counts("state", limit=limit, **{**where, "states": RARE})
    least = {*(TILES if rare.capped else set(TILES).difference(RARE))}
    return _Counts({**found.counts, **{one: rare.counts.get(one, 0) for one in RARE}}, least)


async def submit(desk: Desk, request: Request) -> Response:
    """Submit a task. The form has a submit key: if it is sent twice, one task is submitted."""
    form, session = desk.form(request), desk.session(request)
    if not session.operator:
        # The service takes messages for the agents of its app only; Studio does not know them.
        raise NotFoundError("action", "submit")
    if not form.get("text", "").strip():
        raise InvalidInputError("text", "is empty: write what the task is")
    owner = form.get("owner") or None
    made = await desk.state(request).tasks.submit(
        form.get("agent", ""),
        ChatMessage.user(form["text"]),
        owner=owner,
        submit_key=form.get("submit_key") or None,
    )
    return RedirectResponse(task_path(made.id), 303)


SCREEN = Screen("/studio/tasks", tasks, {"submit": submit} | actions_on(tasks))
