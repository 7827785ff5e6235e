"""Long-term memory in memory: facts by scope, recalled by words, meaning and links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.fact_recall import recall
from holdfast.engines.inmemory.facts import Fact, Facts, fingerprint
from holdfast.spi.fact_draft import FactChange, FactDraft
from holdfast.spi.long_term import (
    FactFilter,
    FactPage,
    FactQuestion,
    FactScope,
    FoundFacts,
    LongTermStorage,
    UnindexedFact,
)
from holdfast.values.facts import Memory


@dataclass(slots=True)
class _Data:
    scopes: dict[FactScope, Facts] = field(default_factory=dict)


class InMemoryLongTerm(LongTermStorage):
    """The facts of one tenant, in memory.

    >>> memory = InMemoryLongTerm(InMemory(), tenant="acme")
    """

    name = InMemory.name

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def save(self, scope: FactScope, memory_id: str, draft: FactDraft, language: str) -> str:  # noqa: ARG002 - words are indexed when a search needs them
        """Store a fact. Returns its id."""
        facts = self._facts(scope)
        earlier = facts.replayed(draft)
        if earlier is not None:
            return earlier
        facts.check_supersedes(draft.supersedes)
        now = self._engine.now()
        expires_at = None if draft.lifetime is None else now + draft.lifetime
        fact = Fact(memory_id, facts.saves, draft, fingerprint(draft), now, expires_at)
        self._data.scopes.setdefault(scope, facts).add(fact)
        return memory_id

    async def update(
        self,
        scope: FactScope,
        memory_id: str,
        change: FactChange,
        language: str,  # noqa: ARG002 - words are indexed when a search needs them
    ) -> str:
        """Store a fact that supersedes another. Returns its id."""
        facts = self._facts(scope)
        earlier = facts.replayed(change)
        if earlier is not None:
            return earlier
        facts.check_supersedes(change.supersedes)
        old, now = facts.all[change.supersedes], self._engine.now()
        expires_at = old.expires_at if change.lifetime is None else now + change.lifetime
        draft = change.applied_to(old.draft)
        facts.add(Fact(memory_id, facts.saves, draft, fingerprint(change), now, expires_at))
        return memory_id

    async def replayed(self, scope: FactScope, draft: FactDraft | FactChange) -> str | None:
        """Return the id of the fact that an earlier save with the same idempotency key stored."""
        return self._facts(scope).replayed(draft)

    async def get(self, scope: FactScope, memory_id: str) -> Memory | None:
        """Return a fact, or ``None``."""
        fact = self._facts(scope).all.get(memory_id)
        return fact.to_memory() if fact else None

    async def delete(self, scope: FactScope, memory_id: str) -> bool:
        """Delete a fact. Returns whether it existed."""
        return self._facts(scope).remove(memory_id)

    async def clear(self, scope: FactScope) -> None:
        """Delete all facts of a scope."""
        self._data.scopes.pop(scope, None)

    async def namespaces(self, agent: str, limit: int, after: str) -> list[str]:
        """Return the namespaces of an agent."""
        scopes = [scope for scope in self._data.scopes if scope[1] == agent and scope[0] > after]
        return sorted(scope[0] for scope in scopes if self._facts(scope).all)[:limit]

    async def recent(self, scope: FactScope, wanted: FactFilter) -> list[Memory]:
        """Return the newest facts of a scope."""
        found = [fact for fact in self._facts(scope).live() if fact.fits(wanted)][::-1]
        return [fact.to_memory(found_by=("recent",)) for fact in found[: wanted.limit]]

    async def search(
        self, scope: FactScope, wanted: FactFilter, question: FactQuestion
    ) -> FoundFacts:
        """Return the best facts, and those that have no vector yet."""
        facts = self._facts(scope)
        held = facts.vectors(question)
        unindexed = [
            UnindexedFact(
                (scope, fact.id), fact.draft.content, lacks_words=False, lacks_vector=True
            )
            for fact in facts.live()
            if question.vector is not None and fact.id not in held
        ]
        return FoundFacts(recall(facts, wanted, question), unindexed)

    async def index(
        self,
        question: FactQuestion,
        facts: Sequence[UnindexedFact],
        vectors: Sequence[list[float] | None],
    ) -> None:
        """Store the vectors of facts."""
        for fact, vector in zip(facts, vectors, strict=True):
            scope, memory_id = fact.ref
            if vector is not None:
                self._facts(scope).keep_vector(question, memory_id, vector)

    async def list(self, scope: FactScope, page: FactPage) -> list[Memory]:
        """Return a page of facts."""
        found = [
            fact
            for fact in self._facts(scope).all.values()
            if fact.fits(page.wanted)
            and (page.superseded or fact.superseded_by is None)
            and (page.after is None or fact.id < page.after)
        ]
        found.sort(key=lambda fact: fact.id, reverse=True)
        return [fact.to_memory() for fact in found[: page.wanted.limit]]

    def _facts(self, scope: FactScope) -> Facts:
        """Return the unexpired facts of a scope; a new, empty ``Facts`` if there are none."""
        facts = self._data.scopes.get(scope)
        if facts is None:
            return Facts()
        facts.purge(self._engine.now())
        if facts.all:
            return facts
        del self._data.scopes[scope]
        return Facts()
