"""Recall over the session log: BM25 first, fused with exact cosine where there are vectors."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from holdfast.engines.cosine import cosines
from holdfast.engines.inmemory.session_log import Row, SessionLog
from holdfast.spi.embedding import Embedder, embed_possible, embed_texts
from holdfast.spi.episodes import (
    MAX_RECALLED_AGENTS,
    EventScope,
    NearestEvents,
    RecallQuestion,
    too_many_agents,
)
from holdfast.values.errors import EngineError
from holdfast.values.events import Recalled
from holdfast.values.ranking import fuse, normalise
from holdfast.values.text import tokenize

_log = logging.getLogger("holdfast.recall")


@dataclass(slots=True)
class _Arms:
    """The scores of each arm of a search, by key, and why an arm is missing or incomplete."""

    lexical: dict[str, float]
    semantic: dict[str, float]
    degraded: str = ""


class Recall:
    """Finds the events of one agent, or of all, by words and by meaning."""

    def __init__(self, log: SessionLog, embedder: Embedder | None) -> None:
        self._log = log
        self._embedder = embedder

    async def search(self, scope: EventScope, question: RecallQuestion) -> list[Recalled]:
        """Return the best events of a scope, by words and by meaning."""
        text, limit = question.text, question.limit
        if not text.strip():
            return self._most_recent(scope, limit)
        self._agents(scope)
        semantic, degraded = await self._by_meaning(scope, text)
        rows, asked = self._log.of_scope(scope), tokenize(text)
        words: dict[str, float] = {}
        for agent in self._agents(scope):
            words |= self._log.words(agent).scores(asked, only=rows)
        arms = _Arms(words, semantic, degraded)
        if not arms.semantic:
            return _ranked(rows, limit, arms, normalise(arms.lexical))
        return _ranked(rows, limit, arms, fuse(arms.lexical, arms.semantic))

    def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:
        """Return the events of a scope that are nearest to a vector."""
        self._agents(scope)
        if self._log.dimension != len(vector):
            return NearestEvents(self._log.dimension, [])
        rows = self._log.of_scope(scope)
        arms = _Arms({}, _by_vector(vector, rows))
        found = _ranked(rows, limit, arms, arms.semantic, normal=False)
        return NearestEvents(self._log.dimension, found)

    def _agents(self, scope: EventScope) -> list[str]:
        found = self._log.agents_of(scope)
        if len(found) > MAX_RECALLED_AGENTS:
            raise too_many_agents()
        return found

    async def _by_meaning(self, scope: EventScope, text: str) -> tuple[dict[str, float], str]:
        if self._embedder is None:
            return {}, ""
        try:
            [asked] = await embed_texts(self._embedder, [text], mode="query")
        except EngineError as error:
            _log.warning("recall by words only: %s", error)
            return {}, f"recall by words only: {error}"
        missing = [
            row
            for agent in self._log.agents_of(scope)
            for row in self._log.of_agent(agent).values()
            if row.vector is None
        ]
        vectors, problem = await embed_possible(
            self._embedder, [("", row.text()) for row in missing]
        )
        have, give = self._log.dimension or len(asked), len(asked)
        if have != give:
            return {}, f"the embedder {self._embedder.name} gives {give} numbers, the log {have}"
        self._log.dimension = give
        for row, vector in zip(missing, vectors, strict=True):
            row.vector = row.vector or vector
        degraded = f"some events have no embedding yet: {problem}" if problem else ""
        return _by_vector(asked, self._log.of_scope(scope)), degraded

    def _most_recent(self, scope: EventScope, limit: int) -> list[Recalled]:
        rows = sorted(
            self._log.of_scope(scope).values(),
            key=lambda row: (row.occurred_at, row.session, row.epoch, row.seq),
            reverse=True,
        )
        return [Recalled(row.event(), 1.0, ("recent",), {}) for row in rows[:limit]]


def _ranked(
    rows: dict[str, Row],
    limit: int,
    arms: _Arms,
    scores: dict[str, float],
    *,
    normal: bool = True,
) -> list[Recalled]:
    best = sorted(scores.items(), key=lambda item: (-item[1], rows[item[0]].id))
    found = []
    for key, score in best[:limit]:
        parts = {"lexical": arms.lexical.get(key), "semantic": arms.semantic.get(key)}
        given = {arm: part for arm, part in parts.items() if part is not None}
        # Recall scores run from 0 to 1: a cosine of -1 becomes 0.
        shown = score if normal else (score + 1) / 2
        found.append(Recalled(rows[key].event(), shown, tuple(given), given, arms.degraded))
    return found


def _by_vector(vector: list[float], rows: dict[str, Row]) -> dict[str, float]:
    held = {key: row.vector for key, row in rows.items() if row.vector is not None}
    return cosines(vector, held)
