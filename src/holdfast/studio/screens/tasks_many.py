"""Actions on several chosen tasks, or on all tasks that match a filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.studio.desk import Desk, back
from holdfast.studio.notices import PARAMETER, PICKED, notice, notice_text
from holdfast.studio.problems import PROBLEM, Problem
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.studio.screens.screen import Handler
from holdfast.studio.screens.task_actions import user_name
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.values.formats import short
from holdfast.values.lifecycle import TaskState

SINCE = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
MOST_AT_ONCE = 200
MOST_PICKED = 50
Outcome = Literal["done", "asked", "ended", "refused"]
"""What an action did to one task; ``asked`` is a request to the worker that holds it."""

ALL = {"retry": "Run again", "pause": "Pause", "resume": "Resume", "cancel": "Cancel"}
"""The actions on all tasks that match a filter, with their labels."""

BATCH = 1_000
BATCHES = 10
"""Batches of one request; if more tasks match, the page asks to continue."""

_HELD = {
    "cancel": frozenset({TaskState.WORKING}),
    "pause": frozenset({TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED}),
}
"""The states in which a task is not stopped at once, but by its worker or after its answer."""

FILTERS = ("state", "agent", "session", "context", "owner", "since", "worker", "q")


def filters_of(desk: Desk, request: Request) -> dict[str, Any]:
    """Return the filter of a request as arguments for ``tasks.list``.

    Raises ``InvalidInputError`` for an invalid state or time: if it were ignored, the filter would
    match more tasks than the reader asked for.

    ::

        page = await ledger.list(**filters_of(desk, request))
    """
    query = request.query_params
    chosen = [one for one in query.getlist("state") if one]
    for one in chosen:
        _check("state", one, [*TaskState])
    since = query.get("since", "")
    if since:
        _check("since", since, [*SINCE])
    filters: dict[str, Any] = {
        "states": chosen or None,
        "agent": query.get("agent") or None,
        "session_id": query.get("session") or query.get("context") or None,
        "worker": query.get("worker") or None,
        "text": query.get("q") or None,
    }
    if desk.session(request).operator and query.get("owner"):
        filters["owner"] = query["owner"]
    if since:
        filters["updated_after"] = datetime.now(UTC) - SINCE[since]
    return filters


def _check(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InvalidInputError(name, f"must be one of {', '.join(known)}, not {short(value, 40)}")


async def asked(desk: Desk, request: Request, filters: dict[str, Any]) -> dict[str, Any] | None:
    """Count the tasks that the action in ``?all=`` would change, for the confirmation."""
    query = request.query_params
    what = query.get("all", "")
    if what not in ALL or not desk.writes(request):
        return None
    kept = [
        (name, value)
        for name, value in query.multi_items()
        if name not in {"all", "cursor", PARAMETER, PICKED}
    ]
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
    ledger, session = desk.state(request).tasks, desk.session(request)
    if what == "resume":
        if filters["states"] and TaskState.PAUSED not in filters["states"]:
            return [], False
        where = {**filters, "states": [TaskState.PAUSED]}
        page = await ledger.list(**where, limit=BATCH, children=session.operator)
        return [one.id for one in page.tasks], bool(page.next_cursor)
    found = await getattr(ledger, f"{what}_many")(**_where(filters), limit=BATCH, dry_run=True)
    if session.operator:
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


def _many(what: str, page: Handler) -> Handler:
    """Return the form action that does ``what`` to each chosen task.

    If it is possible for none, ``page`` shows the list again with what was chosen.
    """

    async def act(desk: Desk, request: Request) -> Response:
        form = desk.form(request)
        counted: Counter[Outcome] = Counter()
        refused: list[str] = []
        for one in picked_of(form.get("tasks", "")):
            outcome = await _tried(desk, request, what, one, form.get("submit_key", ""))
            counted[outcome] += 1
            if outcome == "refused":
                refused.append(one)
        ended, asked = counted["ended"], counted["asked"]
        word = notice(what, counted["done"], len(refused), ended=ended, asked=asked)
        if refused and len(refused) == counted.total():
            error = InvalidInputError("tasks", notice_text(word))
            request.scope[PROBLEM] = Problem("", error, form)
            return await page(desk, request)
        more = {PARAMETER: word}
        if refused:
            more[PICKED] = ",".join(refused[:MOST_PICKED])
        return back(form, "/studio/tasks", more)

    return act


def picked_of(text: str) -> list[str]:
    """Return the ids of tasks in a list with commas, each once.

    >>> picked_of("t1,t2,,t1")
    ['t1', 't2']
    """
    return list(dict.fromkeys(one for one in text.split(",") if one))[:MOST_AT_ONCE]


async def _tried(desk: Desk, request: Request, what: str, task_id: str, key: str) -> Outcome:
    try:
        return await _do(desk, request, what, task_id, key)
    except (ConflictError, InvalidInputError, NotFoundError):
        return "refused"


async def _do(desk: Desk, request: Request, what: str, task_id: str, key: str) -> Outcome:
    """Do ``what`` to a task; a retry with the same ``key`` submits one task only."""
    ledger = desk.state(request).tasks
    before = await ledger.get(task_id, messages_limit=1, artifacts=False)
    if before is None or not seen_tasks(desk.session(request), [before]):
        raise NotFoundError("task", task_id)
    # The ledger takes these requests, and changes nothing.
    if what == "cancel" and before.terminal:
        return "ended"
    if what == "pause" and before.state is TaskState.PAUSED:
        return "refused"
    if what == "resume" and before.state is not TaskState.PAUSED and not before.pause_requested:
        return "refused"
    more: dict[str, Any] = {"by": user_name(desk, request)}
    if what == "retry":
        more["submit_key"] = f"{key}-{task_id}" if key else None
    after = await getattr(ledger, what)(task_id, **more)
    if what == "cancel" and after.state is not TaskState.CANCELED:
        return "ended" if after.terminal else "asked"
    return "asked" if what == "pause" and after.state is not TaskState.PAUSED else "done"


def _all(what: str) -> Handler:
    """Return the form action that does ``what`` to the tasks that match the filter, in batches."""

    async def act(desk: Desk, request: Request) -> Response:
        filters = filters_of(desk, request)
        if not any(value is not None for value in filters.values()):
            raise InvalidInputError("all", "needs a filter: choose a state, an agent or an owner")
        counted: Counter[Outcome] = Counter()
        more = True
        for _ in range(BATCHES):
            batch, more = await _batch(desk, request, what, filters)
            counted += batch
            if not more or not (batch["done"] or batch["asked"]):
                break
        done, asked = counted["done"], counted["asked"]
        refused = counted["refused"] + counted["ended"]
        extra = {PARAMETER: notice(what, done, refused, asked=asked)}
        if more and (done or asked):
            extra["all"] = what
        return back(desk.form(request), "/studio/tasks", extra)

    return act


async def _batch(
    desk: Desk, request: Request, what: str, filters: dict[str, Any]
) -> tuple[Counter[Outcome], bool]:
    """Do ``what`` to a batch of matching tasks. Returns the outcomes and whether there are more."""
    if desk.session(request).operator and what != "resume":
        ledger, name = desk.state(request).tasks, user_name(desk, request)
        found = await getattr(ledger, f"{what}_many")(**_where(filters), limit=BATCH, by=name)
        asked = await _requested(ledger, what, filters, set(found.task_ids))
        outcomes: dict[Outcome, int] = {"done": len(found.task_ids) - asked, "asked": asked}
        return Counter(outcomes), found.more
    ids, more = await _matching(desk, request, what, filters)
    # They may have changed since they were listed.
    return Counter([await _tried(desk, request, what, one, "studio-all") for one in ids]), more


async def _requested(ledger: TaskLedger, what: str, filters: dict[str, Any], ids: set[str]) -> int:
    """Count the tasks for which ``what`` was only requested: their state has not changed yet.

    Of more than ``BATCH`` such tasks the newest are counted.
    """
    held = _HELD.get(what, frozenset()).intersection(_where(filters)["states"])
    if not held or not ids:
        return 0
    page = await ledger.list(**{**filters, "states": sorted(held)}, limit=BATCH)
    return sum(
        one.id in ids and (one.cancel_requested if what == "cancel" else one.pause_requested)
        for one in page.tasks
    )


def actions_on(page: Handler) -> dict[str, Handler]:
    """Return the actions on several tasks; ``page`` shows the list again if none was possible.

    ::

        Screen("/studio/tasks", tasks, actions_on(tasks))
    """
    return {what: _many(what, page) for what in ("cancel", "pause", "resume", "retry")} | {
        f"{what}-all": _all(what) for what in ALL
    }
