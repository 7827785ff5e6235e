"""Recall over the session log: one statement, after queued events were indexed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_vector
from holdfast.kernel.core.codec import decode_json
from holdfast.kernel.core.errors import EngineError, InvalidInputError
from holdfast.kernel.core.ranking import K1, LEXICAL_WEIGHT, B
from holdfast.kernel.core.text import tokenize
from holdfast.kernel.storage.embedding import Embedder, embed_possible, embed_texts
from holdfast.kernel.storage.episodes import Recalled
from holdfast.kernel.storage.event_text import event_text
from holdfast.kernel.storage.log_entry import LogEntry

_SQL = load("recall")
_log = logging.getLogger("holdfast.recall")
BATCH = 500
"""How many events are indexed or embedded at once."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose events, and which of them; ``None`` is all."""

    agent: str
    session: str | None
    types: list[str] | None
    since: datetime | None
    until: datetime | None

    @property
    def filters(self) -> tuple[Any, ...]:
        """The filters in the order of the statements."""
        return (self.session, self.types, self.since, self.until)


class Recall:
    """Finds the events of one agent by words and by meaning."""

    def __init__(self, engine: Postgres, tenant: str, embedder: Embedder | None) -> None:
        self._engine = engine
        self._tenant = tenant
        self._embedder = embedder

    async def by_vector(self, vector: list[float], scope: Scope, limit: int) -> list[Recalled]:
        """The nearest events that have a vector."""
        rows = await self._engine.fetch(
            _SQL["nearest"],
            *(self._tenant, scope.agent, vector, len(vector), limit, *scope.filters),
            safe=True,
        )
        check_vector("query", vector, dimension=rows[0][0])
        found = []
        for _, semantic, *row in rows:
            if semantic is not None:
                event = LogEntry(*row[:7]).to_event(row[7], row[8])
                # A cosine of -1 is as far as can be: 0 on the scale of recall.
                given = {"semantic": semantic}
                found.append(Recalled(event, (semantic + 1) / 2, ("semantic",), given, ""))
        return found

    async def by_text(self, text: str, scope: Scope, limit: int) -> list[Recalled]:
        """By words, and by meaning where there is an embedder."""
        if not text.strip():
            return await self._most_recent(scope, limit)
        vector, degraded = await self._embed_question(text, scope.agent)
        lexemes = list(dict.fromkeys(tokenize(text)))
        queued, found = await self._search(lexemes, vector, scope, limit, degraded)
        if queued:
            # What was appended before this call must be found: index the queue, and ask again.
            await self._index_queue(scope.agent)
            _, found = await self._search(lexemes, vector, scope, limit, degraded)
        return found

    async def _index_queue(self, agent: str) -> None:
        async def fetch(sql: LiteralString, *args: Any) -> Sequence[Any]:
            return await self._engine.fetch(sql, *args, safe=True)

        while await index_batch(fetch, self._tenant, agent):
            pass

    async def _search(
        self,
        lexemes: list[str],
        vector: list[float] | None,
        scope: Scope,
        limit: int,
        degraded: str,
    ) -> tuple[bool, list[Recalled]]:
        rows = await self._engine.fetch(
            _SQL["search"],
            *(self._tenant, scope.agent, lexemes, vector, limit, *scope.filters),
            *(K1, B, LEXICAL_WEIGHT),
            safe=True,
        )
        found = []
        for _, score, lexical, semantic, *row in rows:
            if score is not None:
                parts = {"lexical": lexical, "semantic": semantic}
                given = {arm: part for arm, part in parts.items() if part is not None}
                event = LogEntry(*row[:7]).to_event(row[7], row[8])
                found.append(Recalled(event, score, tuple(given), given, degraded))
        return bool(rows and rows[0][0]), found

    async def _most_recent(self, scope: Scope, limit: int) -> list[Recalled]:
        rows = await self._engine.fetch(
            _SQL["most_recent"], self._tenant, scope.agent, limit, *scope.filters, safe=True
        )
        events = [LogEntry(*row[:7]).to_event(row[7], row[8]) for row in rows]
        return [Recalled(event, 1.0, ("recent",), {}) for event in events]

    async def _embed_question(self, text: str, agent: str) -> tuple[list[float] | None, str]:
        """The question as a vector, after every event of the agent has one; or why not."""
        if self._embedder is None:
            return None, ""
        try:
            [asked] = await embed_texts(self._embedder, [text], mode="query")
        except EngineError as error:
            _log.warning("recall by words only: %s", error)
            return None, f"recall by words only: {error}"
        rows = await self._engine.fetch(
            _SQL["missing_vectors"], self._tenant, agent, BATCH, safe=True
        )
        texts = [event_text(row["type"], decode_json(row["body"])) for row in rows]
        vectors, problem = await embed_possible(self._embedder, texts)
        kept = [(row, vector) for row, vector in zip(rows, vectors, strict=True) if vector]
        try:
            await self._engine.fetch(
                _SQL["keep_vectors"],
                *(
                    self._tenant,
                    [row["session"] for row, _ in kept],
                    [row["id"] for row, _ in kept],
                ),
                *([number for _, vector in kept for number in vector], len(asked)),
                safe=True,
            )
        except InvalidInputError as error:
            return None, f"the embedder {self._embedder.name}: {error}"
        return asked, f"some events have no embedding yet: {problem}" if problem else ""


async def index_batch(
    fetch: Callable[..., Awaitable[Sequence[Any]]], tenant: str, agent: str
) -> int:
    """Index some of an agent's queued events; how many there were, 0 when the queue is empty."""
    rows = await fetch(_SQL["unindexed"], tenant, agent, BATCH)
    if not rows:
        return 0
    ranges: dict[tuple[int, int, int], int] = {}
    events: list[tuple[int, int, int]] = []
    postings: list[tuple[int, str, int]] = []
    for session_key, epoch, first_seq, seq, kind, body in rows:
        place = ranges.setdefault((session_key, epoch, first_seq), len(ranges) + 1)
        if seq is not None:
            words = Counter(tokenize(event_text(kind, decode_json(body))))
            events.append((place, seq, words.total()))
            postings += [(len(events), lexeme, times) for lexeme, times in words.items()]
    await fetch(
        _SQL["index"],
        *(tenant, agent),
        *(
            [row[slot] for row in table]
            for table in (list(ranges), events, postings)
            for slot in range(3)
        ),
    )
    return len(rows)
