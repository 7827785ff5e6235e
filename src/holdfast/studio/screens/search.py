"""Search tasks, sessions, memories, facts and entities at once, by words or by an id."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk
from holdfast.studio.screens.graph import name
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import EngineError, InvalidInputError, NotSupportedError
from holdfast.values.event_text import event_text
from holdfast.values.identity import ALL_AGENTS
from holdfast.values.tasks.records import TaskRecord

SHOWN = 8
NEWEST = 200
"""Maximum number of tasks that are searched for words, the last changed first."""

AGENTS = 10
"""Maximum number of agents whose facts are searched."""

T = TypeVar("T")


async def search(desk: Desk, request: Request) -> Response:
    """Show everything that matches the words, or has the id, of a query."""
    words = request.query_params.get("q", "").strip()
    state = desk.memory_state(request)
    tasks, sessions, hits, facts, entities, late = [], [], [], [], [], ""
    if words:
        ledger = desk.state(request).tasks
        # A list by words reads every task if few have them: the newest are enough here.
        newest = await ledger.list(limit=NEWEST, first_message=True)
        by_id = await found_or_none(ledger.list(id_prefix=words, limit=SHOWN, first_message=True))
        said = [one for one in newest.tasks if words.casefold() in _first(one).casefold()]
        unique = list({one.id: one for one in [*(by_id.tasks if by_id else ()), *said]}.values())
        tasks = seen_tasks(desk.session(request), unique)[:SHOWN]
        session = await found_or_none(state.episodes.get_session(words))
        sessions = [session] if session else []
        try:
            hits = await found_or_none(state.episodes.recall(ALL_AGENTS, words, limit=SHOWN)) or []
        except EngineError as error:
            # A word that most of a long log has: the other parts are shown.
            late = str(error)
        entities = await found_or_none(state.graph.find_entities([words])) or []
        for agent in (await desk.agents(request))[:AGENTS]:
            one = await found_or_none(state.long_term.search(agent, words, limit=3))
            facts += [(agent, fact) for fact in one or ()]
    return desk.page(
        request,
        "search.html",
        words=words,
        tasks=tasks,
        sessions=sessions,
        hits=hits,
        facts=facts[:SHOWN],
        entities=entities[:SHOWN],
        late=late,
        newest=NEWEST,
        name_of=name,
        text_of=lambda event: event_text(event.type, event.payload),
    )


def _first(task: TaskRecord) -> str:
    return task.first_message.text if task.first_message else ""


async def found_or_none(asked: Awaitable[T]) -> T | None:
    """Return a result; ``None`` if the words are not a valid id, or the store cannot search so.

    ::

        session = await found_or_none(state.episodes.get_session(words))
    """
    try:
        return await asked
    except (InvalidInputError, NotSupportedError):
        return None


SCREEN = Screen("/studio/search", search)
