"""What an agent knows across sessions: facts, and how they are recalled."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import AgentId

RecallMode: TypeAlias = Literal["text", "vector", "graph", "hybrid"]
MODES: tuple[str, ...] = get_args(RecallMode)


@dataclass(frozen=True, slots=True)
class Memory:
    """A fact, and how well it answers the query that found it.

    >>> Memory("Ravi prefers Python", 0.9, "m1", {}).superseded_by is None
    True
    """

    content: str
    score: float
    """Relevance to the query, from 0 to 1; 1 where there was no query to compare with."""

    id: str
    metadata: dict[str, Any]
    topic: str = ""
    confidence: float = 1.0
    source: str = ""
    """Where the fact comes from, such as a session or a document."""

    entities: tuple[str, ...] = ()
    """The ids of the entities of the graph that the fact is about."""

    created_at: datetime | None = None
    expires_at: datetime | None = None
    superseded_by: str | None = None
    """The id of the memory that replaced this one."""

    found_by: tuple[str, ...] = ()
    """The arms of the search that found it: ``text``, ``vector``, ``graph``, or ``recent``."""

    degraded: str = ""
    """Why the search could not do all that its mode asks for; empty when it could."""


def check_confidence(field: str, value: object) -> float:
    """A degree of belief, from 0 to 1.

    >>> check_confidence("confidence", 1)
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInputError(field, f"must be a number, not {type(value).__name__}")
    if not 0 <= value <= 1:
        raise InvalidInputError(field, f"must be from 0 to 1, not {value!r}")
    return float(value)


def check_mode(mode: object) -> RecallMode:
    """One of the modes of recall.

    >>> check_mode("hybrid")
    'hybrid'
    """
    match mode:
        case "text" | "vector" | "graph" | "hybrid":
            return mode
        case _:
            raise InvalidInputError("mode", f"unknown {mode!r}: known are {', '.join(MODES)}")


@runtime_checkable
class LongTermMemory(Protocol):
    """Facts of an agent in a namespace, kept across sessions and recalled by a query.

    A store recalls in one of four modes, chosen when it is made. ``text`` ranks by words, with no
    model. ``vector`` ranks by the embedder's cosine. ``graph`` recalls what is linked to the
    entities that a query names, and to their neighbours. ``hybrid`` fuses what is configured of
    them.

    Promises:

    - a memory comes back as it was saved
    - each save is a memory of its own
    - a memory says when it was saved and when it expires
    - get of an unknown memory is none
    - metadata comes back exactly as it went in
    - content is any text, the empty one included
    - topic, confidence and source are kept
    - a confidence outside of 0 to 1 is refused
    - a search finds memories that hold any word of the query
    - a memory with more of the query's words comes first
    - a rare word of the query weighs more than a common one
    - words match by their stem, whatever their case
    - the language decides how words are stemmed
    - the score lies between 0 and 1, the best first
    - memories of the same score are ordered from new to old
    - an empty query returns the most recent first
    - a search limit of zero is an empty result
    - a search limit below zero is refused
    - a search never returns more than its limit
    - topic narrows a search
    - min_confidence narrows a search
    - a memory without ttl_seconds never expires
    - a memory expires when its ttl_seconds have passed
    - a ttl_seconds of zero or less is refused
    - a superseded memory is left out of search
    - a superseded memory is still returned by get, with what superseded it
    - superseding an unknown memory is refused and nothing is written
    - superseding a superseded memory is a conflict and nothing is written
    - of concurrent saves that supersede the same memory one wins
    - a memory stays superseded when what superseded it is deleted
    - a save with the same idempotency_key and content gives the same id
    - a save with the same idempotency_key and other content is a conflict
    - an idempotency_key is free again when its memory is gone
    - concurrent saves with the same idempotency_key are one memory
    - delete removes a memory and says whether it was there
    - clear removes the memories of one scope
    - clear is idempotent
    - one namespace never sees another's memories
    - one agent never sees another's memories
    - one tenant never sees another's memories
    - an agent is the same by its id and by its text
    - concurrent saves are all kept
    - an agent, a namespace or an id that is not an id is refused
    - a save that is refused writes nothing
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - memories are still there after a reopen
    - a store recalls by text unless it has an embedder or a graph, and then hybrid
    - an unknown mode is refused with the known ones
    - a result says which arms found it
    - a vector search returns the nearest by meaning first
    - a vector search without an embedder is not supported, and the error says how to configure one
    - a vector search with the embedder down is an engine error
    - a hybrid search fuses words and meaning
    - a hybrid search with the embedder down answers from full text and says so
    - a save is durable before it is embedded
    - what the embedder missed is embedded by a later search
    - a memory is embedded once
    - a change of embedder embeds again
    - a text that the embedder cannot take never blocks its neighbours
    - a query that names an entity recalls its memories
    - an entity is recognised by its name whatever the case
    - the memories of neighbours come after those of the entity
    - a query that names no entity recalls nothing from the graph
    - a hybrid search adds what the graph knows
    - entities that are not in the graph are refused and nothing is written
    - entities without a graph are not supported, and the error says how to configure one
    - a graph search without a graph is not supported, and the error says how to configure one
    - every mode leaves out the superseded, the expired and the deleted
    - every mode scores between 0 and 1
    """

    @abstractmethod
    async def save(
        self,
        agent_id: AgentId,
        content: str,
        *,
        namespace: str = "default",
        metadata: dict[str, Any] | None = None,
        ttl_seconds: int | None = None,
        topic: str = "",
        confidence: float = 1.0,
        source: str = "",
        supersedes: str | None = None,
        idempotency_key: str | None = None,
        entities: list[str] | None = None,
    ) -> str:
        """Keep a fact, and return its id.

        ``supersedes`` names the memory that this one replaces. ``entities`` are ids of the graph.
        With an ``idempotency_key``, the same save again is the same memory.

        ::

            id = await memory.save(agent, "Ravi prefers Python", topic="tools", source="s1")
        """
        ...

    @abstractmethod
    async def search(
        self,
        agent_id: AgentId,
        query: str,
        *,
        namespace: str = "default",
        limit: int = 10,
        topic: str | None = None,
        min_confidence: float | None = None,
    ) -> list[Memory]:
        """The memories that answer a query, the best first; for an empty query the most recent.

        ::

            found = await memory.search(agent, "which language does Ravi like?", limit=3)
        """
        ...

    @abstractmethod
    async def get(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> Memory | None:
        """One memory, superseded or not; ``None`` if it is not there or has expired.

        ::

            memory = await long_term.get(agent, id)
        """
        ...

    @abstractmethod
    async def delete(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> bool:
        """Forget one memory; whether it was there.

        ::

            await memory.delete(agent, id)
        """
        ...

    @abstractmethod
    async def clear(self, agent_id: AgentId, *, namespace: str = "default") -> None:
        """Forget all memories of an agent in a namespace.

        ::

            await memory.clear(agent, namespace="drafts")
        """
        ...
