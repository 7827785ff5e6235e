"""Recall: ask as an agent would, and see why each memory came back."""

from __future__ import annotations

import re
import time

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.pages import is_word
from holdfast.studio.screens.screen import Screen
from holdfast.studio.screens.session_log import delete_event
from holdfast.values.errors import InvalidInputError
from holdfast.values.event_text import event_text
from holdfast.values.events import Event, Recalled
from holdfast.values.ids import new_id
from holdfast.values.text import tokenize

SHOWN = 8
BUDGET = 400
"""Maximum tokens of the assembled context that the page shows."""

ARMS = {"lexical": "words", "semantic": "meaning"}


async def recall(desk: Desk, request: Request) -> Response:
    """Show what an agent recalls for a question."""
    query = request.query_params
    question, agent = query.get("q", "").strip(), query.get("agent", "").strip()
    state = desk.memory_state(request)
    found: list[Recalled] = []
    took, seen, facts = 0.0, None, []
    if question and agent:
        began = time.perf_counter()
        found = await state.episodes.recall(
            agent,
            question,
            limit=SHOWN,
            session_id=query.get("session") or None,
            types=[query["type"]] if query.get("type") else None,
            explain=True,
        )
        took = time.perf_counter() - began
        memory = state.memory(agent, session_id=query.get("session") or None)
        if query.get("session"):
            seen = await memory.assemble(question, BUDGET)
        facts = await state.long_term.search(agent, question, limit=3)
    top = {
        arm: max((one.scores.get(arm, 0.0) for one in found), default=0.0) or 1.0 for arm in ARMS
    }
    words = set(tokenize(question))
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
        arms=ARMS,
        best=max((one.score for one in found), default=0.0) or 1.0,
        marked=lambda event: marked(event, words),
        seen=seen,
        facts=facts,
        degraded=next((one.degraded for one in found if one.degraded), ""),
        new_id=new_id,
    )


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
