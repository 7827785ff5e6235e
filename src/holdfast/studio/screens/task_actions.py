"""The actions of forms on tasks, shared by the inbox, the list and the page of a task."""

from __future__ import annotations

import json
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.problems import PROBLEM, Problem
from holdfast.studio.screens.answer_form import schema_of, value_of
from holdfast.studio.screens.screen import Handler
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError


def task_path(task_id: str) -> str:
    """Return the path of a task's page.

    >>> task_path("a/b")
    '/studio/tasks/a%2Fb'
    """
    return f"/studio/tasks/{quote(task_id, safe='')}"


def task_id(desk: Desk, request: Request) -> str:
    """Return the id of the task that a form is about, from the path or from the field ``task``."""
    found = request.path_params.get("id") or desk.form(request).get("task", "")
    if not found:
        raise InvalidInputError("task", "is missing")
    return str(found)


async def answer(desk: Desk, request: Request) -> Response:
    """Answer the question of a task. The form has the message's id: sent twice, it counts once."""
    key, form = task_id(desk, request), desk.form(request)
    text = await _typed(desk, request, key) if "typed" in form else form.get("text", "")
    if not text.strip():
        raise InvalidInputError("text", "is empty: write an answer")
    message = ChatMessage.user(text)
    if form.get("message_id"):
        message = ChatMessage("user", message.content, id=form["message_id"])
    await desk.state(request).tasks.respond(key, message, by=user_name(desk, request))
    return back(form, task_path(key))


async def _typed(desk: Desk, request: Request, key: str) -> str:
    """Return the answer from the form of a schema, as JSON text."""
    task = await desk.state(request).tasks.get(key, messages_limit=1, artifacts=False)
    schema = None if task is None else schema_of(task)
    if schema is None:
        raise InvalidInputError("message", "the question has been answered: load the page again")
    value = value_of(schema, desk.form(request))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def answer_on(page: Handler) -> Handler:
    """Return the action that answers a task; if the answer is refused, ``page`` shows it again.

    ::

        Screen("/studio", inbox, {"answer": answer_on(inbox)})
    """

    async def act(desk: Desk, request: Request) -> Response:
        try:
            return await answer(desk, request)
        except InvalidInputError as error:
            form = desk.form(request)
            if "typed" not in form:
                raise
            request.scope[PROBLEM] = Problem(task_id(desk, request), error, form)
            return await page(desk, request)

    return act


async def cancel(desk: Desk, request: Request) -> Response:
    """Cancel a task."""
    key, form = task_id(desk, request), desk.form(request)
    note = form.get("note") or "canceled in Studio"
    await desk.state(request).tasks.cancel(key, note=note, by=user_name(desk, request))
    return back(form, task_path(key))


async def pause(desk: Desk, request: Request) -> Response:
    """Pause a task."""
    key, form = task_id(desk, request), desk.form(request)
    note = form.get("note") or "paused in Studio"
    await desk.state(request).tasks.pause(key, note=note, by=user_name(desk, request))
    return back(form, task_path(key))


async def resume(desk: Desk, request: Request) -> Response:
    """Resume a paused task."""
    key, form = task_id(desk, request), desk.form(request)
    note = form.get("note") or "resumed in Studio"
    await desk.state(request).tasks.resume(key, note=note, by=user_name(desk, request))
    return back(form, task_path(key))


async def retry(desk: Desk, request: Request) -> Response:
    """Submit a task again, and go to the new task."""
    key, form = task_id(desk, request), desk.form(request)
    made = await desk.state(request).tasks.retry(
        key, submit_key=form.get("submit_key") or None, by=user_name(desk, request)
    )
    return RedirectResponse(task_path(made.id), 303)


async def resume_failed(desk: Desk, request: Request) -> Response:
    """Continue a failed task from its last stored step, as a new task, and go there."""
    key, form = task_id(desk, request), desk.form(request)
    made = await desk.state(request).tasks.resume_failed(
        key, submit_key=form.get("submit_key") or None, by=user_name(desk, request)
    )
    return RedirectResponse(task_path(made.id), 303)


async def fork(desk: Desk, request: Request) -> Response:
    """Fork a task: a new task continues from what it had stored after an event. Go there."""
    key, form = task_id(desk, request), desk.form(request)
    at = form.get("at", "")
    if not (at.isascii() and at.isdigit() and len(at) < 18):
        raise InvalidInputError("at", "must be the number of an event")
    text = form.get("text", "").strip()
    made = await desk.state(request).tasks.fork(
        key,
        int(at),
        message=ChatMessage.user(text) if text else None,
        submit_key=form.get("submit_key") or None,
        by=user_name(desk, request),
    )
    return RedirectResponse(task_path(made.id), 303)


def user_name(desk: Desk, request: Request) -> str:
    """Return the name of the user, as it is stored with what the user does to a task."""
    owner = desk.session(request).owner
    return f"{'operator' if owner is None else owner} (Studio)"


ACTIONS: dict[str, Handler] = {
    "cancel": cancel,
    "pause": pause,
    "resume": resume,
    "retry": retry,
    "resume-failed": resume_failed,
    "fork": fork,
}
