"""Recall of facts in one statement; what no index knows yet is made known first."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.escape import escape
from holdfast.backends.postgres.index_key import index_key
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.codec import decode_json
from holdfast.kernel.core.ranking import K1, LEXICAL_WEIGHT, LINK_WEIGHT, B
from holdfast.kernel.core.text import tokenize
from holdfast.kernel.storage.embedding import embed_possible
from holdfast.kernel.storage.fact_question import FactQuestion, FactQuestions
from holdfast.kernel.storage.long_term import Memory

_SQL = load("long_term")
_log = logging.getLogger("holdfast.recall")


class FactRecall(FactQuestions):
    """One way of recall over facts in Postgres."""

    async def search(
        self, engine: Postgres, scope: tuple[str, ...], query: str, narrowed: tuple[Any, ...]
    ) -> list[Memory]:
        """The best facts of a scope; ``narrowed`` is the limit, the topic and the confidence."""
        self.check_configured(engine=Postgres.name)
        if not query.strip():
            rows = await engine.fetch(_SQL["recent"], *scope, *narrowed, safe=True)
            return [memory_of(row, found_by=("recent",)) for row in rows]
        question = await self.ask(query)
        by_words = self.mode in {"text", "hybrid"}
        asked = (
            *scope,
            *narrowed,
            *(self.language, list(self.lexemes(query)) if by_words else [], K1, B),
            *(self._model, question.vector),
            *(list(question.entities), list(question.entities.values())),
            *(self.mode, LEXICAL_WEIGHT, LINK_WEIGHT),
        )
        rows = await engine.fetch(_SQL["search"], *asked, safe=True)
        lacking = [row for row in rows if row["score"] is None]
        if lacking and await self._complete(engine, scope[0], lacking, question):
            rows = await engine.fetch(_SQL["search"], *asked, safe=True)
        if question.degraded:
            _log.warning("%s", question.degraded)
        return [
            memory_of(row, row["score"], _arms(row), question.degraded)
            for row in rows
            if row["score"] is not None
        ]

    def lexemes(self, text: str) -> Counter[str]:
        """The lexemes of a text as the index holds them, in order, and how often each stands."""
        return Counter(map(index_key, tokenize(text, language=self.language)))

    @property
    def _model(self) -> str | None:
        return index_key(escape(self.embedder.name)) if self.embedder else None

    async def _complete(
        self, engine: Postgres, tenant: str, lacking: Sequence[Any], question: FactQuestion
    ) -> bool:
        """Index and embed what is lacking; whether there is more to be found than before."""
        texts = [decode_json(row["content"]) for row in lacking]
        words = {
            at: self.lexemes(texts[at - 1])
            for at, row in enumerate(lacking, start=1)
            if row["by_text"]
        }
        postings = [
            (at, lexeme, times) for at, held in words.items() for lexeme, times in held.items()
        ]
        vectors = await self._embed(
            {at: texts[at - 1] for at, row in enumerate(lacking, start=1) if row["by_vector"]},
            question,
        )
        if not words and not vectors:
            return False
        await engine.fetch(
            _SQL["complete"],
            *(tenant, lacking[0]["scope"], [row["number"] for row in lacking]),
            *(self.language, list(words), [held.total() for held in words.values()]),
            *([posting[slot] for posting in postings] for slot in range(3)),
            *(self._model, len(question.vector or ()), list(vectors)),
            [number for vector in vectors.values() for number in vector],
            safe=True,
        )
        return True

    async def _embed(self, texts: dict[int, str], question: FactQuestion) -> dict[int, list[float]]:
        if not texts or self.embedder is None:
            return {}
        vectors, problem = await embed_possible(self.embedder, list(texts.values()))
        if problem:
            question.degraded = f"some memories have no embedding yet: {problem}"
        return {at: vector for at, vector in zip(texts, vectors, strict=True) if vector is not None}


def memory_of(
    row: Any, score: float = 1.0, found_by: tuple[str, ...] = (), degraded: str = ""
) -> Memory:
    """The memory in a row."""
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
        degraded=degraded,
    )


def _arms(row: Any) -> tuple[str, ...]:
    return tuple(arm for arm in ("text", "vector", "graph") if row[f"by_{arm}"])
