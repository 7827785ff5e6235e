"""Recall: ask as an agent would, and see why each memory came back."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.pages import is_word
from holdfast.studio.screens.screen import Screen
from holdfast.studio.screens.session_log import delete_event, read_around
from holdfast.values.errors import InvalidInputError
from holdfast.values.event_text import event_text
from holdfast.values.events import KNOWN_TYPES, Event, Recalled
from holdfast.values.ids import new_id
from holdfast.values.text import tokenize

SHOWN = 8
BUDGET = 400
"""Maximum tokens of the assembled context that the page shows."""

NEIGHBOURS = 3
"""How many events before and after a hit its neighbours are."""

SINCE = {"day": 1, "week": 7, "month": 30}
ARMS = {"lexical": "words", "semantic": "meaning"}
RULES = {
    "speaker": "said by whom the question names",
    "session": "others in its session match",
    "near": "neighbours match",
    "asks": "is a question itself",
}
"""What each rule of recall adds, in words."""


async def recall(desk: Desk, request: Request) -> Response:
    """Show what an agent recalls for a question."""
    query = request.query_params
    question, agent = query.get("q", "").strip(), query.get("agent", "").strip()
    state = desk.memory_state(request)
    found: list[Recalled] = []
    took, seen, facts = 0.0, None, []
    days = SINCE.get(query.get("since", ""))
    near: list[Event] = []
    if question and agent:
        began = time.perf_counter()
        found = await state.episodes.recall(
            agent,
            question,
            limit=SHOWN,
            session_id=query.get("session") or None,
            types=[one for one in query.getlist("types") if one] or None,
            since=None if days is None else datetime.now(UTC) - timedelta(days=days),
            explain=True,
        )
        took = time.perf_counter() - began
        memory = state.memory(agent, session_id=query.get("session") or None)
        if query.get("session"):
            seen = await memory.assemble(question, BUDGET)
        beside = next((one.event for one in found if one.event.id == query.get("near")), None)
        if beside is not None:
            near = await read_around(state.episodes, beside, NEIGHBOURS)
        facts = await state.long_term.search(agent, question, limit=3)
    top = {
        arm: max((one.scores.get(arm, 0.0) for one in found), default=0.0) or 1.0 for arm in ARMS
    }
    words = set(tokenize(question))
    # Without an embedder nothing is compared by meaning.
    used = {"lexical"}.union(*(one.scores for one in found))
    return desk.page(
        request,
        "recall.html",
        query=query,
        agents=await desk.agents(request),
        question=question,
        agent=agent,
        found=found,
        took=took,
        top=top,
        arms={arm: name for arm, name in ARMS.items() if arm in used},
        rules=RULES,
        best=max((one.score for one in found), default=0.0) or 1.0,
        spelled=spelled(question),
        marked=lambda event: marked(event, words),
        seen=seen,
        facts=facts,
        degraded=next((one.degraded for one in found if one.degraded), ""),
        new_id=new_id,
        near=near,
        near_of=query.get("near", "") if near else "",
        types=KNOWN_TYPES,
        text_of=lambda event: event_text(event.type, event.payload),
        kept=urlencode([(name, one) for name, one in query.multi_items() if name != "near"]),
    )


def spelled(question: str) -> dict[str, str]:
    """Return the word of a question that each of its stems is from.

    >>> spelled("Which databases?")
    {'databas': 'databases'}
    """
    return {stem: word for word in re.findall(r"\w+", question) for stem in tokenize(word)}


def marked(event: Event, words: set[str]) -> list[tuple[str, bool]]:
    """Split an event's text into pieces, each with whether it matches a word of the question.

    The template escapes each piece: no markup is made here.
    """
    text = event_text(event.type, event.payload)
    return [
        (piece, is_word(piece) and not words.isdisjoint(tokenize(piece)))
        for piece in re.split(r"(\w+)", text)
        if piece
    ]


async def pin(desk: Desk, request: Request) -> Response:
    """Save the text of an event as a fact; a form that is sent twice saves one fact."""
    form = desk.form(request)
    text = form.get("text", "").strip()
    if not text:
        raise InvalidInputError("text", "is empty: write the fact")
    await desk.memory_state(request).long_term.save(
        form.get("agent", ""),
        text,
        source=form.get("source", ""),
        idempotency_key=form.get("key") or None,
    )
    return back(form, "/studio/recall")


async def forget(desk: Desk, request: Request) -> Response:
    """Delete an event from its session's log, and so from every recall."""
    form = desk.form(request)
    await delete_event(desk.memory_state(request), form.get("session", ""), form.get("event", ""))
    return back(form, "/studio/recall")


SCREEN = Screen("/studio/recall", recall, {"pin": pin, "forget": forget})
