"""Recall over the session log: one statement, after queued events are indexed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.engines.postgres.embedding_queue import PostgresEmbeddingQueue
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.event_scope import narrowed, payload_filter, searched, whose
from holdfast.engines.postgres.queries import load
from holdfast.spi.embedding import Embedder, embed_texts
from holdfast.spi.embedding_queue import embed_batch
from holdfast.spi.episodes import (
    MAX_RECALLED_AGENTS,
    EventScope,
    NearestEvents,
    too_many_agents,
)
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import EngineError, InvalidInputError
from holdfast.values.events import Recalled
from holdfast.values.ranking import K1, LEXICAL_WEIGHT, B
from holdfast.values.text import tokenize

_SQL = load("recall")
_log = logging.getLogger("holdfast.recall")
TAIL = 32
"""A search embeds up to this many new events itself, so that it finds them by meaning too."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The vector of a question, or why it has none."""

    vector: list[float] | None
    degraded: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    """The hits of a search, and which part of the log it has not searched."""

    agents: list[str]
    unindexed: list[str]
    model: str | None
    unembedded: bool
    hits: list[Recalled]

    def embedded(self, model: str | None) -> bool:
        return self.model == model and not self.unembedded


class Recall:
    """Finds the events of one agent, or of all, by words and by meaning."""

    def __init__(self, engine: Postgres, tenant: str, embedder: Embedder | None) -> None:
        self._engine = engine
        self._tenant = tenant
        self._embedder = embedder
        self._model = embedder.name if embedder else None
        self._queue = PostgresEmbeddingQueue(engine, tenant=tenant)

    async def by_vector(self, vector: list[float], scope: EventScope, limit: int) -> NearestEvents:
        """Return the nearest events that have a vector."""
        filters = (*_filters(scope), scope.owner, *payload_filter(scope))
        sql, [agent, *other] = searched(narrowed(_SQL["nearest"], *filters), scope, 12)
        rows = await self._engine.search(
            sql, self._tenant, agent, vector, len(vector), limit, *filters, *other
        )
        if rows[0][0] > MAX_RECALLED_AGENTS:
            raise too_many_agents()
        found = []
        for _, _, semantic, *row in rows:
            if semantic is not None:
                event = LogEntry(*row[:7]).to_event(row[7], row[8])
                # Recall scores run from 0 to 1: a cosine of -1 becomes 0.
                given = {"semantic": semantic}
                found.append(Recalled(event, (semantic + 1) / 2, ("semantic",), given, ""))
        return NearestEvents(rows[0][1], found)

    async def by_text(self, text: str, scope: EventScope, limit: int) -> list[Recalled]:
        """Search by words, and with an embedder also by meaning."""
        if not text.strip():
            return await self._most_recent(scope, limit)
        asked = await self._embed_question(text)
        lexemes = list(dict.fromkeys(tokenize(text)))
        found = await self._search(lexemes, asked, scope, limit)
        for agent in found.unindexed:
            # Events appended before this call must be found: index the queue, and search again.
            await self._queue.index(agent)
        if asked.vector is not None and (found.unindexed or not found.embedded(self._model)):
            asked = await self._embed_tail(asked, found.agents, found.model)
        elif not found.unindexed:
            return found.hits
        return (await self._search(lexemes, asked, scope, limit)).hits

    async def _search(
        self, lexemes: list[str], asked: _Asked, scope: EventScope, limit: int
    ) -> _Found:
        filters, more = _filters(scope), (scope.owner, *payload_filter(scope))
        if asked.vector is None:
            sql, [agent, *other] = searched(_SQL["search_words"], scope, 13)
            rows = await self._engine.search(
                sql, self._tenant, agent, lexemes, limit, *filters, *more, K1, B, *other
            )
        else:
            sql = narrowed(_SQL["search"], *filters, *more)
            sql, [agent, *other] = searched(sql, scope, 16)
            rows = await self._engine.search(
                *(sql, self._tenant, agent, lexemes, asked.vector, limit, *filters),
                *(K1, B, LEXICAL_WEIGHT, self._model, *more, *other),
            )
        agents, unindexed, model, unembedded = rows[0][:4]
        if len(agents) > MAX_RECALLED_AGENTS:
            raise too_many_agents()
        hits = []
        for _, _, _, _, score, lexical, semantic, *row in rows:
            if score is not None:
                parts = {"lexical": lexical, "semantic": semantic}
                given = {arm: part for arm, part in parts.items() if part is not None}
                event = LogEntry(*row[:7]).to_event(row[7], row[8])
                hits.append(Recalled(event, score, tuple(given), given, asked.degraded))
        return _Found(agents, unindexed, model, unembedded, hits)

    async def _most_recent(self, scope: EventScope, limit: int) -> list[Recalled]:
        sql, agent = whose(_SQL["most_recent"], scope)
        filters = (*_filters(scope), *payload_filter(scope))
        rows = await self._engine.search(sql, self._tenant, agent, limit, *filters)
        events = [LogEntry(*row[:7]).to_event(row[7], row[8]) for row in rows]
        return [Recalled(event, 1.0, ("recent",), {}) for event in events]

    async def _embed_question(self, text: str) -> _Asked:
        """Return the vector of a question, or why it has none."""
        if self._embedder is None:
            return _Asked(None)
        try:
            [vector] = await embed_texts(self._embedder, [text], mode="query")
        except EngineError as error:
            _log.warning("recall by words only: %s", error)
            return _Asked(None, f"recall by words only: {error}")
        return _Asked(vector)

    async def _embed_tail(self, asked: _Asked, agents: Sequence[str], model: str | None) -> _Asked:
        """Embed the waiting events if they are few; leave many to a worker."""
        embedder = self._embedder
        if embedder is None:
            return asked
        if model not in {None, embedder.name}:
            # Two programs with different embedders would undo each other's work: a worker decides.
            return _Asked(
                None,
                f"recall by words only: the log is embedded by {model}, not by {embedder.name}: "
                "run `holdfast embed run`",
            )
        try:
            if model is None:
                await self._queue.adopt(embedder.name, embedder.dimension)
        except InvalidInputError as error:
            return _Asked(None, f"recall by words only: the embedder {embedder.name}: {error}")
        batch = await self._queue.tail(agents, TAIL + 1)
        if len(batch.texts) > TAIL:
            return _Asked(
                asked.vector,
                f"more than {TAIL} events have no embedding yet and are found by words only: "
                "the embedding worker is behind",
            )
        if not batch.ranges:
            return asked
        _, problem = await embed_batch(self._queue, embedder, batch)
        return _Asked(
            asked.vector, f"some events have no embedding yet: {problem}" if problem else ""
        )


def _filters(scope: EventScope) -> tuple[Any, ...]:
    """Return the filters of a scope, in the order in which the statements take them."""
    return (scope.session, scope.types, scope.since, scope.until)
