"""One task: its timeline, the task as it was at any event, and what to do with it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.answer_form import form_of
from holdfast.studio.screens.owner_view import seen_events, seen_task, seen_tasks
from holdfast.studio.screens.screen import Screen
from holdfast.studio.screens.task_actions import ACTIONS, answer_on, task_path, user_name
from holdfast.studio.screens.task_family import first_message, read_family
from holdfast.studio.screens.timeline import SHOWS, changes, picture, rows
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TERMINAL, Actor, TaskState
from holdfast.values.tasks.events import StepRecord, Transition

WINDOW = 200
"""How many events a page shows if the task has more than ``WHOLE``."""

WHOLE = 500
CHILDREN, FEEDBACK = 50, 20
MESSAGES = 100
"""How many messages of the conversation a page shows."""

MOST_BYTES = 4 * 1024 * 1024
"""How many bytes of messages and artifacts a page shows."""


async def task(desk: Desk, request: Request) -> Response:
    """Show a task, as it is or as it was after the event ``?at=``."""
    key, query = request.path_params["id"], request.query_params
    ledger = desk.state(request).tasks
    found = await ledger.get(key, messages_limit=1, artifacts=False)
    session = desk.session(request)
    if found is None or not seen_tasks(session, [found]):
        raise NotFoundError("task", key)
    found = seen_task(session, found)
    last = found.version
    at = _at(query.get("at", ""), last)
    start = 0 if last <= WHOLE else max(0, min(at - WINDOW // 2, last - WINDOW))
    events = seen_events(
        session,
        await ledger.events(
            key,
            after_seq=start,
            limit=WHOLE if start == 0 and last <= WHOLE else WINDOW,
            max_bytes=MOST_BYTES,
        ),
    )
    # The first message follows the submit.
    first = await ledger.events(key, limit=3)
    begun = first_message(first)
    if at >= last:
        then = await ledger.get(key, messages_limit=MESSAGES, max_bytes=MOST_BYTES)
    else:
        then = await ledger.replay(key, at, messages_limit=MESSAGES)
    pushes = await ledger.list_push_configs(key)
    show = query.get("show", "") if query.get("show", "") in SHOWS else ""
    ended = found.state in TERMINAL
    took = (found.updated_at if ended else datetime.now(UTC)) - found.created_at
    moves = [event.body for event in events if isinstance(event.body, Transition)]
    return desk.page(
        request,
        "task.html",
        task=found,
        form_of=form_of,
        then=None if then is None else seen_task(session, then),
        at=at,
        last=last,
        ended=ended,
        took=took.total_seconds(),
        title=key if begun is None else begun.text,
        family=await read_family(ledger, session, found, first),
        rows=rows(events, show),
        show=show,
        windowed=last > WHOLE,
        start=start,
        shown=len(events),
        picture=picture(events, live=not ended),
        changed=changes(next((event for event in events if event.seq == at), None)),
        pushes=[_address(one.url) for one in pushes],
        undelivered=(await ledger.list_outbox(key))[:FEEDBACK] if pushes else [],
        steps=[
            event.body
            for event in events
            if isinstance(event.body, StepRecord)
            and event.body.key.kind == "step"
            and event.seq <= at
        ],
        lanes=1 + sum(one.to_state is TaskState.WORKING for one in moves),
        workers=sorted({one.worker for one in moves if one.worker}),
        lost=sum(one.by is Actor.RECOVERY for one in moves),
        feedback=(await ledger.list_feedback(key))[-FEEDBACK:],
        children=seen_tasks(session, (await ledger.children(key, limit=CHILDREN)).tasks),
        new_id=new_id,
    )


async def feedback(desk: Desk, request: Request) -> Response:
    """Store feedback on a task."""
    key, form = request.path_params["id"], desk.form(request)
    if not form.get("text", "").strip():
        raise InvalidInputError("text", "is empty: write what was good or wrong")
    rating = form.get("rating", "")
    await desk.state(request).tasks.append_feedback(
        key,
        form["text"],
        rating=int(rating) if rating in {"1", "2", "3", "4", "5"} else None,
        feedback_id=form.get("feedback_id") or None,
        metadata={"by": user_name(desk, request)},
    )
    return back(form, task_path(key))


def _address(url: str) -> str:
    """Return a URL without what may be a secret: its user, its query and its fragment."""
    return re.sub(r"^(\w+://)[^/]*@", r"\1", re.split(r"[?#]", url, maxsplit=1)[0])


def _at(text: str, last: int) -> int:
    """Return the number of the event in ``?at=``, limited to the timeline."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        return last
    return min(max(int(text), 1), last)


SCREEN = Screen(
    "/studio/tasks/{id:path}", task, {**ACTIONS, "answer": answer_on(task), "feedback": feedback}
)
