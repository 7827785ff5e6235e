"""Dead letters: events that Postgres refused to store."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import NotFoundError, NotSupportedError
from holdfast.wiring.dead_letters import replay_dead_letter

SHOWN = 100


async def letters(desk: Desk, request: Request) -> Response:
    """Show dead letters, oldest first."""
    state = desk.state(request)
    try:
        durable = state.ops.hybrid.durable
    except NotSupportedError:
        return desk.page(request, "dead_letters.html", letters=[], hybrid=False, next="")
    after = request.query_params.get("after", "")
    found = await durable.dead_letters(state.tenant, limit=SHOWN, after=after)
    more = found[-1].id if len(found) == SHOWN else ""
    return desk.page(request, "dead_letters.html", letters=found, hybrid=True, next=more)


async def replay(desk: Desk, request: Request) -> Response:
    """Try again to store the event of a dead letter."""
    form = desk.form(request)
    await replay_dead_letter(desk.state(request), form.get("letter", ""))
    return back(form, "/studio/dead-letters")


async def discard(desk: Desk, request: Request) -> Response:
    """Delete a dead letter for good."""
    form, state = desk.form(request), desk.state(request)
    if not await state.ops.hybrid.durable.discard(state.tenant, form.get("letter", "")):
        raise NotFoundError("dead letter", form.get("letter", ""))
    return back(form, "/studio/dead-letters")


SCREEN = Screen(
    "/studio/dead-letters", letters, {"replay": replay, "discard": discard}, operators=True
)
