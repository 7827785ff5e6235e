"""Tools for facts and recall."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.adapters.mcp.tool import LONG, SHORT, Caller, Done, Limit, Tool
from holdfast.values.errors import NotFoundError
from holdfast.values.facts import Memory


class Remember(msgspec.Struct):
    """The arguments of ``remember``."""

    text: Annotated[
        str, Meta(min_length=1, max_length=LONG, description="The fact, in one sentence.")
    ]
    topic: Annotated[str, Meta(max_length=SHORT, description="What it is about, in a word.")] = ""
    source: Annotated[str, Meta(max_length=SHORT, description="Where it comes from.")] = ""


class FactId(msgspec.Struct):
    """The id of a fact."""

    id: str


class Forget(msgspec.Struct):
    """The arguments of ``forget``."""

    id: Annotated[str, Meta(description="The id of the fact, as remember and recall return it.")]


class Recall(msgspec.Struct):
    """The arguments of ``recall``."""

    query: Annotated[
        str, Meta(max_length=LONG, description="What to look for, as a question or in words.")
    ]
    limit: Limit = 5


class ListFacts(msgspec.Struct):
    """The arguments of ``list_facts``."""

    topic: Annotated[str | None, Meta(description="Only the facts about this topic.")] = None
    limit: Limit = 20


class Fact(msgspec.Struct):
    """A fact."""

    id: str
    text: str
    topic: str
    source: str
    score: float


class Happened(msgspec.Struct):
    """Something that happened in a session."""

    at: str
    session: str
    type: str
    payload: dict[str, Any]
    score: float


class Facts(msgspec.Struct):
    """Facts, the best or newest first."""

    facts: list[Fact]


class Recollection(msgspec.Struct):
    """What recall found."""

    facts: list[Fact]
    events: list[Happened]


async def _remember(caller: Caller, asked: Remember) -> FactId:
    made = await caller.state.long_term.save(
        caller.agent, asked.text, topic=asked.topic, source=asked.source
    )
    return FactId(made)


async def _forget(caller: Caller, asked: Forget) -> Done:
    if not await caller.state.long_term.delete(caller.agent, asked.id):
        raise NotFoundError("fact", asked.id)
    return Done(success=True, message="Fact deleted")


async def _recall(caller: Caller, asked: Recall) -> Recollection:
    facts = await caller.state.long_term.search(caller.agent, asked.query, limit=asked.limit)
    found = await caller.state.episodes.recall(caller.agent, asked.query, limit=asked.limit)
    events = [
        Happened(
            one.event.occurred_at.isoformat(),
            one.event.session_id,
            one.event.type,
            one.event.payload,
            one.score,
        )
        for one in found
    ]
    return Recollection([_fact(one) for one in facts], events)


async def _list_facts(caller: Caller, asked: ListFacts) -> Facts:
    found = await caller.state.long_term.search(
        caller.agent, "", topic=asked.topic, limit=asked.limit
    )
    return Facts([_fact(one) for one in found])


def _fact(found: Memory) -> Fact:
    return Fact(found.id, found.content, found.topic, found.source, found.score)


FACT_TOOLS = (
    Tool(
        "remember",
        "Remember",
        "Store a fact for good. Use it for what the user will expect you to know next time.",
        Remember,
        FactId,
        _remember,
    ),
    Tool(
        "recall",
        "Recall",
        "Find facts and past events by words and by meaning.",
        Recall,
        Recollection,
        _recall,
        reads=True,
    ),
    Tool("forget", "Forget", "Delete a fact.", Forget, Done, _forget, deletes=True),
    Tool(
        "list_facts",
        "List Facts",
        "Return the newest facts, of one topic or of all.",
        ListFacts,
        Facts,
        _list_facts,
        reads=True,
    ),
)
