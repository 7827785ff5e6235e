"""The facts of one agent in one namespace, with their indexes."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from holdfast.spi.fact_draft import FactChange, FactDraft, superseded_before, used_before
from holdfast.spi.long_term import FactFilter, FactQuestion
from holdfast.values.codec import decode_json
from holdfast.values.errors import NotFoundError
from holdfast.values.facts import Memory
from holdfast.values.ranking import LexicalIndex
from holdfast.values.text import tokenize

_Model: TypeAlias = tuple[str | None, int]


def fingerprint(draft: FactDraft | FactChange) -> str | None:
    """Return the digest of a save that has an idempotency key; ``None`` without a key."""
    return draft.key and hashlib.sha256(draft.fingerprint.encode()).hexdigest()


@dataclass(slots=True)
class Fact:
    """One fact; ``number`` is its position among all saves of its scope."""

    id: str
    number: int
    draft: FactDraft
    fingerprint: str | None
    """The digest of a save with an idempotency key: a retry must have the same content."""

    created_at: datetime
    expires_at: datetime | None
    superseded_by: str | None = None

    def fits(self, wanted: FactFilter) -> bool:
        """Return whether the fact passes the filter of a search."""
        draft = self.draft
        return draft.confidence >= wanted.min_confidence and wanted.topic in (None, draft.topic)

    def to_memory(self, score: float = 1.0, found_by: tuple[str, ...] = ()) -> Memory:
        """Return the fact as a ``Memory`` for the caller."""
        return Memory(
            content=self.draft.content,
            score=score,
            id=self.id,
            metadata=decode_json(self.draft.metadata),
            topic=self.draft.topic,
            confidence=self.draft.confidence,
            source=self.draft.source,
            entities=self.draft.entities,
            created_at=self.created_at,
            expires_at=self.expires_at,
            superseded_by=self.superseded_by,
            found_by=found_by,
            subject=self.draft.subject,
        )


@dataclass(slots=True)
class Facts:
    """The facts of one scope.

    Indexes and vectors are built when a search needs them, and hold live facts only: neither
    superseded nor expired.
    """

    all: dict[str, Fact] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    saves: int = 0
    _expiring: list[tuple[datetime, str]] = field(default_factory=list)
    _linked: dict[str, set[str]] = field(default_factory=dict)
    _indexes: dict[str, LexicalIndex] = field(default_factory=dict, repr=False)
    _vectors: dict[_Model, dict[str, list[float]]] = field(default_factory=dict, repr=False)

    def replayed(self, draft: FactDraft | FactChange) -> str | None:
        """Return the id of an earlier save with the same key. Raises if its content differs."""
        if draft.key is None or draft.key not in self.keys:
            return None
        fact = self.all[self.keys[draft.key]]
        if fact.fingerprint != fingerprint(draft):
            raise used_before(fact.id, draft.key)
        return fact.id

    def check_supersedes(self, id: str | None) -> None:
        """Raise unless this fact exists and no other fact supersedes it."""
        if id is None:
            return
        if id not in self.all:
            raise NotFoundError("memory", id)
        successor = self.all[id].superseded_by
        if successor is not None:
            raise superseded_before(id, successor)

    def add(self, fact: Fact) -> None:
        """Store a fact that the caller has checked."""
        draft = fact.draft
        self.saves += 1
        self.all[fact.id] = fact
        if draft.key is not None:
            self.keys[draft.key] = fact.id
        if fact.expires_at is not None:
            heapq.heappush(self._expiring, (fact.expires_at, fact.id))
        for entity in draft.entities:
            self._linked.setdefault(entity, set()).add(fact.id)
        for language, index in self._indexes.items():
            index.add(fact.id, tokenize(draft.content, language=language))
        if draft.supersedes is not None:
            self._retire(self.all[draft.supersedes])
            self.all[draft.supersedes].superseded_by = fact.id

    def load(self, fact: Fact) -> None:
        """Store an imported fact, which may be superseded."""
        self.add(fact)
        if fact.superseded_by is not None:
            self._retire(fact)

    def remove(self, id: str) -> bool:
        """Delete a fact. Return whether it existed."""
        fact = self.all.pop(id, None)
        if fact is None:
            return False
        self._retire(fact)
        if fact.draft.key is not None:
            del self.keys[fact.draft.key]
        return True

    def purge(self, now: datetime) -> None:
        """Delete the expired facts."""
        while self._expiring and self._expiring[0][0] <= now:
            self.remove(heapq.heappop(self._expiring)[1])

    def live(self) -> Iterable[Fact]:
        """Return the facts that a search may find, oldest first."""
        return (fact for fact in self.all.values() if fact.superseded_by is None)

    def words(self, query: str, language: str, allowed: Callable[[str], bool]) -> dict[str, float]:
        """Return the BM25 scores of the allowed facts."""
        index = self._indexes.get(language)
        if index is None:
            index = self._indexes[language] = LexicalIndex()
            for fact in self.live():
                index.add(fact.id, tokenize(fact.draft.content, language=language))
        return index.scores(tokenize(query, language=language), allowed)

    def links(self, entity: str) -> Iterable[str]:
        """Return the ids of the live facts about an entity."""
        return self._linked.get(entity, ())

    def vectors(self, question: FactQuestion) -> dict[str, list[float]]:
        """Return the vectors of the question's model, by fact id."""
        return self._vectors.get(_model(question), {})

    def keep_vector(self, question: FactQuestion, id: str, vector: list[float]) -> None:
        """Store a fact's vector, unless the fact was deleted or superseded meanwhile."""
        if id in self.all and self.all[id].superseded_by is None:
            self._vectors.setdefault(_model(question), {})[id] = vector

    def _retire(self, fact: Fact) -> None:
        for entity in fact.draft.entities:
            linked = self._linked.get(entity, set())
            linked.discard(fact.id)
            if not linked:
                self._linked.pop(entity, None)
        for index in self._indexes.values():
            index.remove(fact.id)
        for vectors in self._vectors.values():
            vectors.pop(fact.id, None)


def _model(question: FactQuestion) -> _Model:
    return question.model, len(question.vector or ())
