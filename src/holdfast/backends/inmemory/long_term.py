"""Long-term memory in the process: facts by scope, recalled by words, meaning and links."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.backends.inmemory.engine import InMemory
from holdfast.backends.inmemory.fact_recall import FactRecall
from holdfast.backends.inmemory.facts import Fact, Facts
from holdfast.kernel.core.checks import check_count, check_id, check_text
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.fact_draft import check_entities, draft_fact, fact_scope
from holdfast.kernel.storage.graph import Graph
from holdfast.kernel.storage.long_term import LongTermMemory, Memory, RecallMode, check_confidence


@dataclass(slots=True)
class _Data:
    scopes: dict[tuple[str, str], Facts] = field(default_factory=dict)


class InMemoryLongTerm(LongTermMemory):
    """``LongTermMemory`` of the in-memory engine.

    >>> memory = InMemoryLongTerm(InMemory(), tenant="acme")
    """

    def __init__(
        self,
        engine: InMemory,
        *,
        tenant: str = "default",
        embedder: Embedder | None = None,
        graph: Graph | None = None,
        mode: RecallMode | None = None,
        language: str = "english",
    ) -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)
        self._graph = graph
        self._recall = FactRecall(embedder=embedder, graph=graph, mode=mode, language=language)

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
        """Keep a fact, and return its id."""
        scope = fact_scope(agent_id, namespace)
        draft = draft_fact(
            content,
            metadata=metadata,
            ttl_seconds=ttl_seconds,
            topic=topic,
            confidence=confidence,
            source=source,
            supersedes=supersedes,
            idempotency_key=idempotency_key,
            entities=entities,
        )
        earlier = self._facts(scope).replayed(draft)
        if earlier is not None:
            return earlier
        await check_entities(
            draft.entities, self._graph, engine=InMemory.name, store=InMemoryLongTerm.__name__
        )
        # Looked up again, since others wrote while the graph answered; from here on nobody runs.
        facts = self._facts(scope)
        earlier = facts.replayed(draft)
        if earlier is not None:
            return earlier
        facts.check_supersedes(draft.supersedes)
        now = self._engine.now()
        fact = Fact(
            id=new_id(),
            number=facts.saves,
            content=draft.content,
            metadata=draft.metadata,
            topic=draft.topic,
            confidence=draft.confidence,
            source=draft.source,
            entities=tuple(draft.entities),
            key=draft.key,
            fingerprint=draft.fingerprint,
            created_at=now,
            expires_at=None if draft.lifetime is None else now + draft.lifetime,
        )
        self._data.scopes.setdefault(scope, facts).add(fact, draft.supersedes)
        return fact.id

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
        """The memories that answer a query, the best first; for an empty query the most recent."""
        scope = fact_scope(agent_id, namespace)
        check_text("query", query)
        check_count("limit", limit)
        if topic is not None:
            check_text("topic", topic)
        least = (
            0.0 if min_confidence is None else check_confidence("min_confidence", min_confidence)
        )

        def fits(fact: Fact) -> bool:
            return fact.confidence >= least and topic in (None, fact.topic)

        return await self._recall.search(lambda: self._facts(scope), query, limit, fits)

    async def get(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> Memory | None:
        """One memory, superseded or not; ``None`` if it is not there or has expired."""
        scope = fact_scope(agent_id, namespace)
        fact = self._facts(scope).all.get(check_id("memory_id", memory_id))
        return fact.to_memory() if fact else None

    async def delete(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> bool:
        """Forget one memory; whether it was there."""
        scope = fact_scope(agent_id, namespace)
        return self._facts(scope).remove(check_id("memory_id", memory_id))

    async def clear(self, agent_id: AgentId, *, namespace: str = "default") -> None:
        """Forget all memories of an agent in a namespace."""
        self._data.scopes.pop(fact_scope(agent_id, namespace), None)

    def _facts(self, scope: tuple[str, str]) -> Facts:
        """The facts of a scope without the expired; new ones, kept nowhere yet, if none is left."""
        facts = self._data.scopes.get(scope)
        if facts is None:
            return Facts()
        facts.purge(self._engine.now())
        if facts.all:
            return facts
        del self._data.scopes[scope]
        return Facts()
