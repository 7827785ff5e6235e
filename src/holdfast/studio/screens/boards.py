"""To-do boards of a conversation: a lane per agent, a column per status."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.screen import Screen
from holdfast.values.boards import TaskStatus
from holdfast.values.errors import InvalidInputError, NotFoundError

COLUMNS = (
    (TaskStatus.PLANNED, "Planned"),
    (TaskStatus.IN_PROGRESS, "In progress"),
    (TaskStatus.BLOCKED, "Blocked"),
    (TaskStatus.FAILED, "Failed"),
    (TaskStatus.SUCCEEDED, "Done"),
)
SHOWN = 50
DIGITS = 18
"""Digits of a version that a form may send."""


async def boards(desk: Desk, request: Request) -> Response:
    """Show the conversations that have boards; with ``?id=``, go to that conversation's boards."""
    query = request.query_params
    if query.get("id"):
        owned = f"?{urlencode({'owner': query['owner']})}" if query.get("owner") else ""
        return RedirectResponse(f"/studio/boards/{quote(query['id'], safe='')}{owned}", 303)
    found = await desk.memory_state(request).boards.list_conversations(
        limit=SHOWN, after=query.get("after") or None
    )
    kept = [(name, value) for name, value in query.multi_items() if name != "after"]
    more = urlencode([*kept, ("after", found[-1].id)]) if len(found) == SHOWN else ""
    return desk.page(request, "boards.html", conversations=found, next=more)


async def board(desk: Desk, request: Request) -> Response:
    """Show the boards of a conversation."""
    key = request.path_params["id"]
    found = await desk.memory_state(request).boards.get_boards_by_conversation(key)
    return desk.page(request, "board.html", id=key, boards=found, columns=COLUMNS)


def _path(request: Request) -> str:
    owner = request.query_params.get("owner", "")
    more = f"?owner={quote(owner, safe='')}" if owner else ""
    return f"/studio/boards/{quote(request.path_params['id'], safe='')}{more}"


async def move(desk: Desk, request: Request) -> Response:
    """Change the status of a card."""
    form = desk.form(request)
    store = desk.memory_state(request).boards
    list_id, card = form.get("board", ""), form.get("card", "")
    done = await store.update_status(
        list_id, card, form.get("to", ""), expected_version=_version(form)
    )
    if done is None:
        raise NotFoundError("card", card)
    return back(form, _path(request))


async def start_afresh(desk: Desk, request: Request) -> Response:
    """Set a failed card to planned again, and reset its retries."""
    form = desk.form(request)
    store = desk.memory_state(request).boards
    if await store.force_retry(form.get("board", ""), form.get("card", "")) is None:
        raise NotFoundError("card", form.get("card", ""))
    return back(form, _path(request))


async def add(desk: Desk, request: Request) -> Response:
    """Add a card, or the first board of a conversation."""
    form = desk.form(request)
    store = desk.memory_state(request).boards
    title = form.get("title", "").strip()
    if not title:
        raise InvalidInputError("title", "is empty: write what is to be done")
    if form.get("board"):
        await store.add_tasks(form["board"], [title])
    else:
        await store.create_task_list(request.path_params["id"], [title])
    return back(form, _path(request))


async def rename(desk: Desk, request: Request) -> Response:
    """Change the title of a card."""
    form = desk.form(request)
    store = desk.memory_state(request).boards
    card, title = form.get("card", ""), form.get("title", "").strip()
    if not title:
        raise InvalidInputError("title", "is empty: write what is to be done")
    version = _version(form)
    board = form.get("board", "")
    if await store.update_task_title(board, card, title, expected_version=version) is None:
        raise NotFoundError("card", card)
    return back(form, _path(request))


async def note(desk: Desk, request: Request) -> Response:
    """Replace the note of a card."""
    form = desk.form(request)
    store = desk.memory_state(request).boards
    board, card, text = form.get("board", ""), form.get("card", ""), form.get("note", "").strip()
    if await store.update_task_note(board, card, text, expected_version=_version(form)) is None:
        raise NotFoundError("card", card)
    return back(form, _path(request))


def _version(form: Mapping[str, str]) -> int | None:
    """Return the version of the card that the page showed, if the form has it."""
    text = form.get("version")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS:
        raise InvalidInputError("version", "is not a number: load the page again")
    return int(text)


async def remove(desk: Desk, request: Request) -> Response:
    """Remove a card."""
    form = desk.form(request)
    store = desk.memory_state(request).boards
    if not await store.delete_task(form.get("board", ""), form.get("card", "")):
        raise NotFoundError("card", form.get("card", ""))
    return back(form, _path(request))


LIST = Screen("/studio/boards", boards)
SCREEN = Screen(
    "/studio/boards/{id:path}",
    board,
    {
        "move": move,
        "afresh": start_afresh,
        "add": add,
        "rename": rename,
        "note": note,
        "remove": remove,
    },
)
