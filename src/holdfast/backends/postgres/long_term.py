"""Long-term memory: a save is one statement, a search is another."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.fact_recall import FactRecall, memory_of
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_count, check_id, check_text
from holdfast.kernel.core.codec import encode_json
from holdfast.kernel.core.errors import ConflictError, NotFoundError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.fact_draft import (
    FactDraft,
    check_entities,
    draft_fact,
    fact_scope,
    superseded_before,
    used_before,
)
from holdfast.kernel.storage.graph import Graph
from holdfast.kernel.storage.long_term import LongTermMemory, Memory, RecallMode, check_confidence

_SQL = load("long_term")
_MICROSECOND = timedelta(microseconds=1)


class PostgresLongTerm(LongTermMemory):
    """``LongTermMemory`` of the Postgres engine.

    ::

        memory = PostgresLongTerm(engine, tenant="acme", embedder=embedder, graph=graph)
    """

    def __init__(
        self,
        engine: Postgres,
        *,
        tenant: str = "default",
        embedder: Embedder | None = None,
        graph: Graph | None = None,
        mode: RecallMode | None = None,
        language: str = "english",
    ) -> None:
        self._engine = engine
        self._tenant = tenant
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
        scope = (self._tenant, *fact_scope(agent_id, namespace))
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
        try:
            await check_entities(
                draft.entities, self._graph, engine=Postgres.name, store=PostgresLongTerm.__name__
            )
        except NotFoundError:
            # The same save again is the same memory, also when what it was about is gone.
            earlier = await self._replayed(scope, draft)
            if earlier is None:
                raise
            return earlier
        return await self._save(scope, draft)

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
        scope = (self._tenant, *fact_scope(agent_id, namespace))
        check_text("query", query)
        check_count("limit", limit)
        wanted = None if topic is None else encode_json(check_text("topic", topic))
        least = (
            0.0 if min_confidence is None else check_confidence("min_confidence", min_confidence)
        )
        return await self._recall.search(self._engine, scope, query, (limit, wanted, least))

    async def get(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> Memory | None:
        """One memory, superseded or not; ``None`` if it is not there or has expired."""
        scope = (self._tenant, *fact_scope(agent_id, namespace))
        key = check_id("memory_id", memory_id)
        row = await self._engine.fetchrow(_SQL["get"], *scope, key, safe=True)
        return memory_of(row) if row else None

    async def delete(
        self, agent_id: AgentId, memory_id: str, *, namespace: str = "default"
    ) -> bool:
        """Forget one memory; whether it was there."""
        scope = (self._tenant, *fact_scope(agent_id, namespace))
        key = check_id("memory_id", memory_id)
        gone: bool = await self._engine.fetchval(_SQL["delete"], *scope, key, safe=False)
        return gone

    async def clear(self, agent_id: AgentId, *, namespace: str = "default") -> None:
        """Forget all memories of an agent in a namespace."""
        scope = (self._tenant, *fact_scope(agent_id, namespace))
        await self._engine.fetch(_SQL["clear"], *scope, safe=True)

    async def _save(self, scope: tuple[str, ...], draft: FactDraft) -> str:
        words = self._recall.lexemes(draft.content)
        try:
            saved: str = await self._engine.fetchval(
                _SQL["save"],
                *(*scope, new_id(), encode_json(draft.content), draft.metadata),
                *(encode_json(draft.topic), draft.confidence, encode_json(draft.source)),
                *(draft.entities, draft.lifetime and draft.lifetime // _MICROSECOND),
                *(draft.supersedes, draft.key, _fingerprint(draft)),
                *(self._recall.language, words.total(), list(words), list(words.values())),
                # With a key, the same save again is the same memory.
                safe=draft.key is not None,
            )
        except ConflictError as error:
            raise _conflict(error, draft) from error
        return saved

    async def _replayed(self, scope: tuple[str, ...], draft: FactDraft) -> str | None:
        if draft.key is None:
            return None
        try:
            earlier: str | None = await self._engine.fetchval(
                _SQL["replayed"], *scope, draft.key, _fingerprint(draft), safe=True
            )
        except ConflictError as error:
            raise _conflict(error, draft) from error
        return earlier


def _fingerprint(draft: FactDraft) -> str | None:
    return draft.key and hashlib.sha256(draft.fingerprint.encode()).hexdigest()


def _conflict(error: ConflictError, draft: FactDraft) -> ConflictError:
    """The error in the words of the contract: the database says only which it is."""
    if error.kind == "superseded":
        return superseded_before(error.key, str(error))
    return used_before(error.key, draft.key or "")
