"""Questions whose answer somebody has marked: recall is measured with them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import HoldfastError, InvalidInputError, NotFoundError
from holdfast.values.items import ItemKey, ItemPut
from holdfast.wiring.state import State

NAMESPACE = ("studio", "recall-tests")
SHOWN = 50
"""Maximum number of tests that the page runs."""

DEPTH = 8
"""An expected event counts as found if it is among so many results."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test, and where its event was found."""

    key: str
    agent: str
    question: str
    text: str
    session: str
    rank: int | None
    """Rank of the expected event from 1; ``None`` if it was not found."""

    error: str = ""


async def save_test(state: State, test: dict[str, str]) -> str:
    """Save a test and return its key; the same question and event are one test.

    ::

        key = await save_test(state, {"agent": "planner", "question": "…", "event": "e1"})
    """
    for name in ("agent", "question", "event"):
        if not test.get(name, "").strip():
            raise InvalidInputError(name, "is empty")
    parts = [test["agent"], test["question"], test["event"]]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
    await state.items.put_many([ItemPut(NAMESPACE, key, {**test})])
    return key


async def tests(desk: Desk, request: Request) -> Response:
    """Run the saved tests, and show which find their event."""
    state = desk.memory_state(request)
    saved = await state.items.search(NAMESPACE, limit=SHOWN)
    outcomes = [await _run(state, one.item.key, one.item.value) for one in saved]
    ran = [one for one in outcomes if not one.error]
    lines = [json.dumps(one.item.value, ensure_ascii=False) for one in saved]
    return desk.page(
        request,
        "recall_tests.html",
        outcomes=outcomes,
        found=sum(one.rank is not None for one in ran),
        ran=len(ran),
        depth=DEPTH,
        shown=SHOWN,
        lines="\n".join(lines),
    )


async def _run(state: State, key: str, test: dict[str, Any]) -> Outcome:
    given = {name: str(test.get(name, "")) for name in ("agent", "question", "text", "session")}
    try:
        hits = await state.episodes.recall(given["agent"], given["question"], limit=DEPTH)
    except HoldfastError as error:
        return Outcome(key, **given, rank=None, error=str(error))
    wanted = test.get("event")
    rank = next((at for at, hit in enumerate(hits, 1) if hit.event.id == wanted), None)
    return Outcome(key, **given, rank=rank)


async def save(desk: Desk, request: Request) -> Response:
    """Save a question and the event that answers it."""
    form = desk.form(request)
    names = ("agent", "question", "event", "session", "text")
    await save_test(desk.memory_state(request), {name: form.get(name, "") for name in names})
    return back(form, _path(request))


async def delete(desk: Desk, request: Request) -> Response:
    """Delete a test."""
    state, key = desk.memory_state(request), desk.form(request).get("test", "")
    [known] = await state.items.get_many([ItemKey(NAMESPACE, key)])
    if known is None:
        raise NotFoundError("test", key)
    await state.items.put_many([ItemPut(NAMESPACE, key, None)])
    return RedirectResponse(_path(request), 303)


def _path(request: Request) -> str:
    owner = request.query_params.get("owner", "")
    return (
        f"/studio/recall/tests?{urlencode({'owner': owner})}" if owner else "/studio/recall/tests"
    )


SCREEN = Screen("/studio/recall/tests", tests, {"save-test": save, "delete-test": delete})
