"""Long-term memory: a save is one statement, a search is another."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.escape import escape
from holdfast.engines.postgres.index_key import index_key
from holdfast.engines.postgres.queries import load
from holdfast.spi.fact_draft import FactChange, FactDraft, superseded_before, used_before
from holdfast.spi.long_term import (
    FactFilter,
    FactPage,
    FactQuestion,
    FactScope,
    FoundFacts,
    LongTermStorage,
    UnindexedFact,
)
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import ConflictError
from holdfast.values.facts import Memory
from holdfast.values.ranking import K1, LEXICAL_WEIGHT, LINK_WEIGHT, B
from holdfast.values.text import tokenize

_SQL = load("long_term")
_MICROSECOND = timedelta(microseconds=1)


class PostgresLongTerm(LongTermStorage):
    """The facts of one tenant in Postgres, with their words, vectors and links.

    ::

        memory = PostgresLongTerm(engine, tenant="acme")
    """

    name = Postgres.name

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def save(self, scope: FactScope, memory_id: str, draft: FactDraft, language: str) -> str:
        """Store a fact, its words and its links. Returns its id."""
        words = _lexemes(draft.content, language)
        try:
            saved: str = await self._engine.fetchval(
                _SQL["save"],
                *(self._tenant, *scope, memory_id, encode_json(draft.content), draft.metadata),
                *(encode_json(draft.topic), draft.confidence, encode_json(draft.source)),
                *(draft.entities, draft.lifetime and draft.lifetime // _MICROSECOND),
                *(draft.supersedes, draft.key, _fingerprint(draft)),
                *(language, words.total(), list(words), list(words.values()), draft.subject),
                # With a key, a repeated save returns the same memory.
                safe=draft.key is not None,
            )
        except ConflictError as error:
            raise _conflict(error, draft) from error
        return saved

    async def update(
        self, scope: FactScope, memory_id: str, change: FactChange, language: str
    ) -> str:
        """Store a fact that supersedes another, with its words and links. Returns its id."""
        words = _lexemes(change.content, language)
        try:
            saved: str = await self._engine.fetchval(
                _SQL["update"],
                *(self._tenant, *scope, memory_id, encode_json(change.content), change.metadata),
                *(_json(change.topic), change.confidence, _json(change.source)),
                *(change.entities, change.lifetime and change.lifetime // _MICROSECOND),
                *(change.supersedes, change.key, _fingerprint(change)),
                *(language, words.total(), list(words), list(words.values())),
                # With a key, a repeated update returns the same memory.
                safe=change.key is not None,
            )
        except ConflictError as error:
            raise _conflict(error, change) from error
        return saved

    async def replayed(self, scope: FactScope, draft: FactDraft | FactChange) -> str | None:
        """Return the id of the fact that an earlier save with the same idempotency key stored."""
        args = (self._tenant, *scope, draft.key, _fingerprint(draft))
        try:
            earlier: str | None = await self._engine.fetchval(_SQL["replayed"], *args, safe=True)
        except ConflictError as error:
            raise _conflict(error, draft) from error
        return earlier

    async def get(self, scope: FactScope, memory_id: str) -> Memory | None:
        """Return a fact, or ``None``."""
        args = (self._tenant, *scope, memory_id)
        row = await self._engine.fetchrow(_SQL["get"], *args, safe=True)
        return _memory(row) if row else None

    async def delete(self, scope: FactScope, memory_id: str) -> bool:
        """Delete a fact. Returns whether it existed."""
        args = (self._tenant, *scope, memory_id)
        gone: bool = await self._engine.fetchval(_SQL["delete"], *args, safe=False)
        return gone

    async def clear(self, scope: FactScope) -> None:
        """Delete all facts of a scope."""
        await self._engine.fetch(_SQL["clear"], self._tenant, *scope, safe=True)

    async def namespaces(self, agent: str, limit: int, after: str) -> list[str]:
        """Return the namespaces of an agent."""
        args = (self._tenant, agent, limit, after)
        rows = await self._engine.fetch(_SQL["namespaces"], *args, safe=True)
        return [row["namespace"] for row in rows]

    async def recent(self, scope: FactScope, wanted: FactFilter) -> list[Memory]:
        """Return the newest facts of a scope."""
        args = (self._tenant, *scope, *_narrowed(wanted))
        rows = await self._engine.fetch(_SQL["recent"], *args, safe=True)
        return [_memory(row, found_by=("recent",)) for row in rows]

    async def search(
        self, scope: FactScope, wanted: FactFilter, question: FactQuestion
    ) -> FoundFacts:
        """Return the best facts. Rows without a score are facts that are not indexed yet."""
        by_words = question.mode in {"text", "hybrid"}
        lexemes = list(_lexemes(question.text, question.language)) if by_words else []
        rows = await self._engine.search(
            _SQL["search"],
            *(self._tenant, *scope, *_narrowed(wanted)),
            *(question.language, lexemes, K1, B),
            *(_model(question), question.vector),
            *(list(question.entities), list(question.entities.values())),
            *(question.mode, LEXICAL_WEIGHT, LINK_WEIGHT),
        )
        return FoundFacts(
            [_memory(row, row["score"], _arms(row)) for row in rows if row["score"] is not None],
            [_unindexed(row) for row in rows if row["score"] is None],
        )

    async def index(
        self,
        question: FactQuestion,
        facts: Sequence[UnindexedFact],
        vectors: Sequence[list[float] | None],
    ) -> None:
        """Store the words and the vectors of facts."""
        words = {
            at: _lexemes(fact.content, question.language)
            for at, fact in enumerate(facts, start=1)
            if fact.lacks_words
        }
        postings = [
            (at, lexeme, times) for at, held in words.items() for lexeme, times in held.items()
        ]
        made = {at: vector for at, vector in enumerate(vectors, start=1) if vector is not None}
        [scope] = {fact.ref[0] for fact in facts}
        await self._engine.fetch(
            _SQL["complete"],
            *(self._tenant, scope, [fact.ref[1] for fact in facts]),
            *(question.language, list(words), [held.total() for held in words.values()]),
            *([posting[slot] for posting in postings] for slot in range(3)),
            *(_model(question), len(question.vector or ()), list(made)),
            [number for vector in made.values() for number in vector],
            safe=True,
        )

    async def list(self, scope: FactScope, page: FactPage) -> list[Memory]:
        """Return a page of facts."""
        args = (self._tenant, *scope, *_narrowed(page.wanted), page.superseded, page.after)
        rows = await self._engine.fetch(_SQL["list"], *args, safe=True)
        return [_memory(row) for row in rows]


def _lexemes(text: str, language: str) -> Counter[str]:
    """Return the lexemes of a text in their indexed form, with their counts, in order."""
    return Counter(map(index_key, tokenize(text, language=language)))


def _model(question: FactQuestion) -> str | None:
    return None if question.model is None else index_key(escape(question.model))


def _narrowed(wanted: FactFilter) -> tuple[int, str | None, float]:
    return wanted.limit, _json(wanted.topic), wanted.min_confidence


def _json(text: str | None) -> str | None:
    return None if text is None else encode_json(text)


def _memory(row: Any, score: float = 1.0, found_by: tuple[str, ...] = ()) -> Memory:
    return Memory(
        content=decode_json(row["content"]),
        score=score,
        id=row["id"],
        metadata=decode_json(row["metadata"]),
        topic=decode_json(row["topic"]),
        confidence=row["confidence"],
        source=decode_json(row["source"]),
        entities=tuple(row["entities"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        superseded_by=row["superseded_by"],
        found_by=found_by,
        subject=row["subject"],
    )


def _unindexed(row: Any) -> UnindexedFact:
    ref = (row["scope"], row["number"])
    return UnindexedFact(ref, decode_json(row["content"]), row["by_text"], row["by_vector"])


def _arms(row: Any) -> tuple[str, ...]:
    return tuple(arm for arm in ("text", "vector", "graph") if row[f"by_{arm}"])


def _fingerprint(draft: FactDraft | FactChange) -> str | None:
    return draft.key and hashlib.sha256(draft.fingerprint.encode()).hexdigest()


def _conflict(error: ConflictError, draft: FactDraft | FactChange) -> ConflictError:
    """Return the ``ConflictError`` for a database error, which names only the kind of conflict."""
    if error.kind == "superseded":
        return superseded_before(error.key, str(error))
    return used_before(error.key, draft.key or "")
