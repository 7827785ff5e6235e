"""Long-term memory on any engine: checks the arguments, then calls the engine's storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.contracts.fact_recall import FactRecall
from holdfast.contracts.front import Front
from holdfast.contracts.graph import Graph, KnowledgeGraph
from holdfast.contracts.long_term_memory import FactStore
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.spi.embedding import Embedder
from holdfast.spi.fact_draft import FactChange, FactDraft
from holdfast.spi.long_term import FactFilter, FactPage, FactScope, LongTermStorage
from holdfast.values.checks import (
    check_count,
    check_flag,
    check_id,
    check_ids,
    check_seconds,
    check_subject,
    check_text,
)
from holdfast.values.codec import encode_object
from holdfast.values.errors import InvalidInputError, NotFoundError, NotSupportedError
from holdfast.values.facts import Memory, RecallMode
from holdfast.values.identity import Agent
from holdfast.values.ids import new_id


class LongTerm(Front, FactStore):
    """Implements ``FactStore``: checks the arguments, then calls the engine's storage.

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

    def add_layer(self, layer: Callable[[Any], Any]) -> None:
        """Wrap the engine's storage in a layer, such as encryption."""
        super().add_layer(layer)
        self._recall = self._recall.on(storage=self._storage)

    def _use_scope(self, scope: OwnerScope) -> None:
        super()._use_scope(scope)
        if isinstance(self._graph, KnowledgeGraph):
            # The facts of an owner are about the entities of the same owner.
            self._graph = self._graph.for_owner(scope)
            self._recall = self._recall.on(graph=self._graph)

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
        subject: str | None = None,
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
            subject="" if subject is None else check_subject(subject),
        )
        texts = (draft.content, draft.metadata, draft.topic, draft.source, *draft.entities)
        self._limits.check_value("content", *texts)
        earlier = await self._replayed_without_entities(scope, draft)
        if earlier is not None:
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

    async def update(
        self,
        agent_id: Agent,
        memory_id: str,
        content: str,
        *,
        namespace: str = "default",
        metadata: dict[str, Any] | None = None,
        ttl_seconds: int | None = None,
        topic: str | None = None,
        confidence: float | None = None,
        source: str | None = None,
        idempotency_key: str | None = None,
        entities: list[str] | None = None,
    ) -> str:
        """Replace a memory by one that supersedes it, and return the id of the new one."""
        scope = self._facts_of(agent_id, namespace)
        change = FactChange(
            supersedes=check_id("memory_id", memory_id),
            content=check_text("content", content),
            metadata=None if metadata is None else encode_object(metadata, field="metadata"),
            topic=None if topic is None else check_text("topic", topic),
            confidence=None if confidence is None else check_confidence("confidence", confidence),
            source=None if source is None else check_text("source", source),
            entities=None if entities is None else tuple(check_ids("entities", entities)),
            ttl_seconds=None if ttl_seconds is None else check_seconds("ttl_seconds", ttl_seconds),
            key=None if idempotency_key is None else check_id("idempotency_key", idempotency_key),
        )
        given = (change.metadata, change.topic, change.source, *(change.entities or ()))
        self._limits.check_value("content", change.content, *(text for text in given if text))
        earlier = await self._replayed_without_entities(scope, change)
        if earlier is not None:
            return earlier
        return await self._storage.update(scope, new_id(), change, self._recall.language)

    async def namespaces(
        self, agent_id: Agent, *, limit: int = 100, after: str | None = None
    ) -> list[str]:
        """Return the namespaces in which an agent has memories, in order."""
        agent = self._scope.agent(agent_id)
        last = "" if after is None else check_id("after", after)
        count = check_count("limit", limit)
        return await self._storage.namespaces(agent, count, last) if count else []

    async def _replayed_without_entities(
        self, scope: FactScope, draft: FactDraft | FactChange
    ) -> str | None:
        """Return the id that an earlier save with this key returned, if an entity is missing now.

        Returns ``None`` if all entities exist. Raises ``NotFoundError`` if one is missing and there
        was no such save. So a retry returns the same memory, even if its entities were deleted
        since.
        """
        missing = await self._missing_entity(draft.entities or ())
        if missing is None:
            return None
        earlier = None if draft.key is None else await self._storage.replayed(scope, draft)
        if earlier is None:
            raise NotFoundError("entity", missing)
        return earlier

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

    async def list(
        self,
        agent_id: Agent,
        *,
        namespace: str = "default",
        limit: int = 100,
        after: str | None = None,
        topic: str | None = None,
        min_confidence: float | None = None,
        superseded: bool = False,
    ) -> list[Memory]:
        """Return the memories of a namespace, the newest first."""
        scope = self._facts_of(agent_id, namespace)
        page = FactPage(
            FactFilter(
                check_count("limit", limit),
                None if topic is None else check_text("topic", topic),
                0.0
                if min_confidence is None
                else check_confidence("min_confidence", min_confidence),
            ),
            None if after is None else check_id("after", after),
            check_flag("superseded", superseded),
        )
        return await self._storage.list(scope, page) if page.wanted.limit else []


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
