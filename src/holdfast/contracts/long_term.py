"""Long-term memory, as agents use it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.fact_recall import FactRecall
from holdfast.contracts.front import Front
from holdfast.contracts.graph import Graph, KnowledgeGraph
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.spi.embedding import Embedder
from holdfast.spi.fact_draft import FactDraft
from holdfast.spi.long_term import FactFilter, FactScope, LongTermStorage
from holdfast.values.checks import (
    check_count,
    check_id,
    check_ids,
    check_seconds,
    check_text,
)
from holdfast.values.codec import encode_object
from holdfast.values.errors import InvalidInputError, NotFoundError, NotSupportedError
from holdfast.values.facts import Memory, RecallMode
from holdfast.values.identity import Agent, AgentId
from holdfast.values.ids import new_id


@runtime_checkable
class LongTermMemory(Protocol):
    """Facts of an agent in a namespace, kept across sessions and recalled by a query.

    A store recalls in one of four modes, chosen when it is created. ``text`` ranks by words, with
    no
    model. ``vector`` ranks by the embedder's cosine. ``graph`` recalls what is linked to the
    entities that a query names, and to their neighbours. ``hybrid`` fuses those of them that are
    configured.

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
        """Store a fact, and return its id.

        ``supersedes`` names the memory that this one replaces. ``entities`` are ids of the graph.
        With an ``idempotency_key``, a retry of the same save returns the same memory.

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
        """Return the memories that match a query, best first; the newest for an empty query.

        ::

            found = await memory.search(agent, "which language does Ravi like?", limit=3)
        """
        ...

    @abstractmethod
    async def get(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> Memory | None:
        """Return one memory, superseded or not; ``None`` if it is not there or has expired.

        ::

            memory = await long_term.get(agent, id)
        """
        ...

    @abstractmethod
    async def delete(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> bool:
        """Delete one memory. Returns whether it was there.

        ::

            await memory.delete(agent, id)
        """
        ...

    @abstractmethod
    async def clear(self, agent_id: AgentId, *, namespace: str = "default") -> None:
        """Delete all memories of an agent in a namespace.

        ::

            await memory.clear(agent, namespace="drafts")
        """
        ...


class LongTerm(Front, LongTermMemory):
    """``LongTermMemory`` on any engine.

    ::

        memory = LongTerm(PostgresLongTerm(engine, tenant="acme"), embedder=embedder, graph=graph)
    """

    def __init__(
        self,
        storage: LongTermStorage,
        *,
        embedder: Embedder | None = None,
        graph: Graph | None = None,
        mode: RecallMode | None = None,
        language: str = "english",
    ) -> None:
        self._storage = storage
        self._graph = graph
        self._recall = FactRecall(
            storage, embedder=embedder, graph=graph, mode=mode, language=language
        )

    def _use_scope(self, scope: OwnerScope) -> None:
        super()._use_scope(scope)
        if isinstance(self._graph, KnowledgeGraph):
            # The facts of an owner are about the entities of the same owner.
            self._graph = self._graph.for_owner(scope)
            self._recall = self._recall.on_graph(self._graph)

    async def save(
        self,
        agent_id: Agent,
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
        """Store a fact, and return its id."""
        scope = self._facts_of(agent_id, namespace)
        draft = FactDraft(
            content=check_text("content", content),
            metadata=encode_object({} if metadata is None else metadata, field="metadata"),
            topic=check_text("topic", topic),
            confidence=check_confidence("confidence", confidence),
            source=check_text("source", source),
            entities=tuple(check_ids("entities", [] if entities is None else entities)),
            ttl_seconds=None if ttl_seconds is None else check_seconds("ttl_seconds", ttl_seconds),
            supersedes=None if supersedes is None else check_id("supersedes", supersedes),
            key=None if idempotency_key is None else check_id("idempotency_key", idempotency_key),
        )
        texts = (draft.content, draft.metadata, draft.topic, draft.source, *draft.entities)
        self._limits.check_value("content", *texts)
        missing = await self._missing_entity(draft.entities)
        if missing is not None:
            # A retry returns the same memory, even if its entities were deleted since.
            earlier = None if draft.key is None else await self._storage.replayed(scope, draft)
            if earlier is None:
                raise NotFoundError("entity", missing)
            return earlier
        return await self._storage.save(scope, new_id(), draft, self._recall.language)

    async def search(
        self,
        agent_id: Agent,
        query: str,
        *,
        namespace: str = "default",
        limit: int = 10,
        topic: str | None = None,
        min_confidence: float | None = None,
    ) -> list[Memory]:
        """Return the memories that match a query, best first; the newest for an empty query."""
        scope = self._facts_of(agent_id, namespace)
        text = self._limits.check_query("query", check_text("query", query))
        wanted = FactFilter(
            check_count("limit", limit),
            None if topic is None else check_text("topic", topic),
            0.0 if min_confidence is None else check_confidence("min_confidence", min_confidence),
        )
        return await self._recall.search(scope, text, wanted)

    async def get(
        self, agent_id: Agent, memory_id: str, *, namespace: str = "default"
    ) -> Memory | None:
        """Return one memory, superseded or not; ``None`` if it is not there or has expired."""
        scope = self._facts_of(agent_id, namespace)
        return await self._storage.get(scope, check_id("memory_id", memory_id))

    async def delete(self, agent_id: Agent, memory_id: str, *, namespace: str = "default") -> bool:
        """Delete one memory. Returns whether it was there."""
        scope = self._facts_of(agent_id, namespace)
        return await self._storage.delete(scope, check_id("memory_id", memory_id))

    async def clear(self, agent_id: Agent, *, namespace: str = "default") -> None:
        """Delete all memories of an agent in a namespace."""
        await self._storage.clear(self._facts_of(agent_id, namespace))

    async def _missing_entity(self, entities: tuple[str, ...]) -> str | None:
        """Return the first entity that is not in the graph, or ``None``."""
        if entities and self._graph is None:
            raise NotSupportedError(
                self._storage.name,
                "memories about entities",
                why="configure a graph, as in LongTerm(storage, graph=…)",
            )
        for entity in entities:
            if self._graph and not (await self._graph.get_neighbors(entity, depth=0)).entities:
                return entity
        return None

    def _facts_of(self, agent_id: Agent, namespace: object) -> FactScope:
        return check_id("namespace", namespace), self._scope.agent(agent_id)


def check_confidence(field: str, value: object) -> float:
    """Check a confidence: from 0 to 1.

    >>> check_confidence("confidence", 1)
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInputError(field, f"must be a number, not {type(value).__name__}")
    if not 0 <= value <= 1:
        raise InvalidInputError(field, f"must be from 0 to 1, not {value!r}")
    return float(value)
