"""Long-term memory, as agents use it."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.fact_recall import FactRecall
from holdfast.contracts.front import Front
from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.fact_draft import FactDraft
from holdfast.kernel.storage.graph import Graph
from holdfast.kernel.storage.long_term import LongTermMemory, Memory, RecallMode, check_confidence
from holdfast.spi.long_term import FactFilter, FactScope, LongTermStorage
from holdfast.values.checks import (
    check_count,
    check_id,
    check_ids,
    check_seconds,
    check_text,
)
from holdfast.values.codec import encode_object
from holdfast.values.errors import NotFoundError, NotSupportedError
from holdfast.values.identity import Agent
from holdfast.values.ids import new_id


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
        """Keep a fact, and return its id."""
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
        self._limits.check_value("content", draft.content, draft.metadata)
        missing = await self._missing_entity(draft.entities)
        if missing is not None:
            # The same save again is the same memory, also when what it was about is gone.
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
        """The memories that answer a query, the best first; for an empty query the most recent."""
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
        """One memory, superseded or not; ``None`` if it is not there or has expired."""
        scope = self._facts_of(agent_id, namespace)
        return await self._storage.get(scope, check_id("memory_id", memory_id))

    async def delete(self, agent_id: Agent, memory_id: str, *, namespace: str = "default") -> bool:
        """Forget one memory; whether it was there."""
        scope = self._facts_of(agent_id, namespace)
        return await self._storage.delete(scope, check_id("memory_id", memory_id))

    async def clear(self, agent_id: Agent, *, namespace: str = "default") -> None:
        """Forget all memories of an agent in a namespace."""
        await self._storage.clear(self._facts_of(agent_id, namespace))

    async def _missing_entity(self, entities: tuple[str, ...]) -> str | None:
        """The first entity that is not in the graph."""
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
