"""Questions of tasks that wait for a person."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk
from holdfast.studio.screens.answer_form import form_of
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.studio.screens.screen import Screen
from holdfast.studio.screens.task_actions import answer_on, cancel
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TaskState

WAITING = (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)
SHOWN = 50


async def inbox(desk: Desk, request: Request) -> Response:
    """Show the tasks that wait for an answer, the longest waiting first."""
    page = await desk.state(request).tasks.list(
        states=WAITING, order="oldest", limit=SHOWN, count=True, first_message=True
    )
    return desk.page(
        request,
        "inbox.html",
        asks=seen_tasks(desk.session(request), page.tasks),
        total=page.total,
        form_of=form_of,
        new_id=new_id,
    )


SCREEN = Screen("/studio", inbox, {"answer": answer_on(inbox), "cancel": cancel})
