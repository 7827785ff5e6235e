"""The list of tasks, with counts by state, filters and actions on many."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.studio.screens.screen import Handler, Screen
from holdfast.studio.screens.task_actions import task_path
from holdfast.values.content import ChatMessage
from holdfast.values.errors import HoldfastError, InvalidInputError, NotFoundError
from holdfast.values.lifecycle import TERMINAL, TaskState

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

SINCE = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
MOST_AT_ONCE = 200
ALL = {"retry": "Run again", "pause": "Pause", "cancel": "Cancel"}
"""The actions on all tasks that match a filter, with their labels."""
FILTERS = ("state", "agent", "context", "owner", "since", "worker", "q")


async def tasks(desk: Desk, request: Request) -> Response:
    """Show a page of tasks."""
    query = request.query_params
    ledger = desk.state(request).tasks
    filters = _filters(desk, request)
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
    kept = [(name, value) for name, value in query.multi_items() if name != "cursor"]
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
        filtered=any(name in query for name in FILTERS),
        next=urlencode([*kept, ("cursor", found.next_cursor)]) if found.next_cursor else "",
        asked=await _asked(desk, request, filters),
    )


def _filters(desk: Desk, request: Request) -> dict[str, Any]:
    query = request.query_params
    chosen = [state for state in query.getlist("state") if state in set(TaskState)]
    filters: dict[str, Any] = {
        "states": chosen or None,
        "agent": query.get("agent") or None,
        "session_id": query.get("context") or None,
        "worker": query.get("worker") or None,
        "text": query.get("q") or None,
    }
    if desk.session(request).operator and query.get("owner"):
        filters["owner"] = query["owner"]
    if query.get("since") in SINCE:
        filters["updated_after"] = datetime.now(UTC) - SINCE[query["since"]]
    return filters


async def _asked(desk: Desk, request: Request, filters: dict[str, Any]) -> dict[str, Any] | None:
    """Count the tasks that the action in ``?all=`` would change, for the confirmation."""
    query = request.query_params
    if query.get("all") not in ALL or not desk.writes(request):
        return None
    what = query["all"]
    kept = [(name, value) for name, value in query.multi_items() if name not in {"all", "cursor"}]
    ids, more = await _matching(desk, request, what, filters)
    return {
        "what": what,
        "name": ALL[what],
        "count": len(ids),
        "more": more,
        "query": urlencode(kept),
    }


async def _matching(
    desk: Desk, request: Request, what: str, filters: dict[str, Any]
) -> tuple[list[str], bool]:
    """Return the ids of matching tasks that the session may change, and whether there are more."""
    ledger = desk.state(request).tasks
    found = await getattr(ledger, f"{what}_many")(**_where(filters), dry_run=True)
    if desk.session(request).operator:
        return found.task_ids, found.more
    return [one for one in found.task_ids if await _is_seen(desk, request, one)], found.more


def _where(filters: dict[str, Any]) -> dict[str, Any]:
    """Return the filter with all states if it has none: bulk operations need more than an owner."""
    return {**filters, "states": filters["states"] or list(TaskState)}


async def _is_seen(desk: Desk, request: Request, task_id: str) -> bool:
    session = desk.session(request)
    if session.operator:
        return True
    found = await desk.state(request).tasks.get(task_id, messages_limit=1, artifacts=False)
    return found is not None and bool(seen_tasks(session, [found]))


class _Counts(NamedTuple):
    states: Mapping[str, int]
    least: set[str]
    """The states whose counts are lower bounds."""


async def _counts(ledger: TaskLedger, filters: dict[str, Any]) -> _Counts:
    """Count tasks by state, up to ``COUNTED``; tasks in rare states are counted separately."""
    where = {**filters, "states": None, "text": None}
    found = await ledger.counts("state", limit=COUNTED, **where)
    if not found.capped:
        return _Counts(found.counts, set())
    rare = await ledger.counts("state", limit=COUNTED, **{**where, "states": RARE})
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


def _many(what: str) -> Handler:
    """Return the form action that does ``what`` to each chosen task."""

    async def act(desk: Desk, request: Request) -> Response:
        form = desk.form(request)
        chosen = [one for one in form.get("tasks", "").split(",") if one][:MOST_AT_ONCE]
        ledger = desk.state(request).tasks
        done, failures = 0, []
        for one in chosen:
            try:
                if not await _is_seen(desk, request, one):
                    raise NotFoundError("task", one)
                await getattr(ledger, what)(one)
                done += 1
            except HoldfastError as error:
                failures.append(str(error))
        if failures and not done:
            raise InvalidInputError("tasks", f"nothing was done: {failures[0]}")
        return back(form, "/studio/tasks")

    return act


def _all(what: str) -> Handler:
    """Return the form action that does ``what`` to up to a thousand tasks that match the filter."""

    async def act(desk: Desk, request: Request) -> Response:
        filters = _filters(desk, request)
        if not any(value is not None for value in filters.values()):
            raise InvalidInputError("all", "needs a filter: choose a state, an agent or an owner")
        ledger = desk.state(request).tasks
        if desk.session(request).operator:
            await getattr(ledger, f"{what}_many")(**_where(filters))
        else:
            for one in (await _matching(desk, request, what, filters))[0]:
                await getattr(ledger, what)(one)
        return back(desk.form(request), "/studio/tasks")

    return act


SCREEN = Screen(
    "/studio/tasks",
    tasks,
    {"submit": submit}
    | {what: _many(what) for what in ("cancel", "pause", "resume", "retry")}
    | {f"{what}-all": _all(what) for what in ALL},
)
