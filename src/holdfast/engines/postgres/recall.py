"""Recall over the session log: one statement, after queued events are indexed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from holdfast.engines.postgres.embedding_queue import PostgresEmbeddingQueue
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.event_scope import narrowed, payload_filter, searched, whose
from holdfast.engines.postgres.indexing import (
    BATCH,
    LOOKED_AT,
    WordBatch,
    batches,
    read_batches,
    stored_name,
    write_batch,
    write_embedded_batch,
)
from holdfast.engines.postgres.queries import load
from holdfast.spi.embedding import (
    Embedder,
    embed_possible,
    embed_texts,
    lexical_weight,
    reads_context,
)
from holdfast.spi.embedding_queue import embed_batch
from holdfast.spi.episodes import (
    MAX_RECALLED_AGENTS,
    EventScope,
    NearestEvents,
    RecallQuestion,
    too_many_agents,
)
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import EngineError, InvalidInputError
from holdfast.values.events import Event, Recalled
from holdfast.values.ranking import K1, B
from holdfast.values.recall_hits import Found, to_hits
from holdfast.values.recall_rules import CANDIDATES, LEXICAL_WEIGHT, Candidate, Ranked, rank
from holdfast.values.text import names_in, tokenize

_SQL = load("recall")
_log = logging.getLogger("holdfast.recall")
TAIL = 32
"""If at most this many new events have no vector, a search embeds them itself."""

ROUNDS = 20
"""How many batches of waiting events a search indexes first: about 20,000 events."""

MERGE_AFTER = 256
"""A search merges an agent's index blocks after this many batches, if nothing else did before."""

_BODY_BYTES = 4096
"""Bodies larger than this are read for the hits only, by a second statement."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its vector, or with the reason why it has none."""

    question: RecallQuestion
    lexemes: list[str]
    names: list[str]
    vector: list[float] | None = None
    degraded: str = ""

    def with_problem(self, problem: str, *, vector: bool = True) -> _Asked:
        found = self.vector if vector else None
        return _Asked(self.question, self.lexemes, self.names, found, problem)


class Recall:
    """Finds the events of one agent, or of all, by words and by meaning."""

    def __init__(self, engine: Postgres, tenant: str, embedder: Embedder | None) -> None:
        self._engine = engine
        self._tenant = tenant
        self._embedder = embedder
        self._model = embedder.name if embedder else None
        self._queue = PostgresEmbeddingQueue(engine, tenant=tenant)

    async def by_vector(self, vector: list[float], scope: EventScope, limit: int) -> NearestEvents:
        """Return the events whose vectors are nearest to this one."""
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

    async def by_text(self, question: RecallQuestion, scope: EventScope) -> list[Recalled]:
        """Search by words, and with an embedder also by meaning."""
        if not question.text.strip():
            return await self._most_recent(scope, question.limit)
        asked = await self._embed_question(question)
        found = await self._search(asked, scope, index_limit=BATCH)
        for left in reversed(range(ROUNDS)):
            if not found["indexing"]:
                break
            # Events appended before this call must be found: index them, and search again.
            await self._index(asked, found)
            found = await self._search(asked, scope, index_limit=BATCH if left else 0)
        if asked.vector is not None and (found["unembedded"] or found["model"] != self._model):
            asked = await self._embed_tail(asked, found)
            found = await self._search(asked, scope, index_limit=0)
        return await self._hits(asked, found)

    async def _search(
        self, asked: _Asked, scope: EventScope, *, index_limit: int
    ) -> dict[str, Any]:
        """Return the row of ``search_events``, and the batches to index before searching again."""
        begin, other = scope.names
        rows = await self._engine.search(
            *(_SQL["search"], self._tenant, scope.agent, begin, other, MAX_RECALLED_AGENTS),
            *(asked.lexemes, [stored_name(one) for one in asked.names], asked.vector),
            *(self._model, max(CANDIDATES, asked.question.limit), *_filters(scope), scope.owner),
            *(*payload_filter(scope), K1, B, _BODY_BYTES, index_limit, LOOKED_AT),
        )
        found = {name: rows[0][name] for name in _COLUMNS}
        if len(found["searched"]) > MAX_RECALLED_AGENTS:
            raise too_many_agents()
        if found["indexing"]:
            found["batches"] = batches([tuple(row)[-_WAITING:] for row in rows])
        return found

    async def _index(self, asked: _Asked, found: dict[str, Any]) -> None:
        """Add batches to the index. A batch that changed meanwhile is left to the next search."""
        for batch in found["batches"]:
            ready = [batch]
            if not batch.complete:
                ready = await read_batches(self._fetch, self._tenant, [batch.agent])
            for one in ready:
                if asked.vector is None or not await self._index_embedded(one, found["model"]):
                    await write_batch(self._fetch, self._tenant, one, merge_after=MERGE_AFTER)

    async def _index_embedded(self, batch: WordBatch, model: str | None) -> bool:
        """Add a few new events to the index with their vectors, in one round trip.

        Returns whether that was possible; if the embedder fails, the events wait for a vector.
        """
        embedder, lacking = self._embedder, [one for one in batch.events if not one.embedded]
        if embedder is None or model != embedder.name or not batch.fresh or len(lacking) > TAIL:
            return False
        vectors, problem = await embed_possible(
            embedder, [(one.context, one.text) for one in lacking]
        )
        if problem:
            return False
        ordinals = [at for at, one in enumerate(batch.events, 1) if not one.embedded]
        made = {at: vector for at, vector in zip(ordinals, vectors, strict=True) if vector}
        whose_vectors = (embedder.name, embedder.dimension)
        await write_embedded_batch(self._fetch, self._tenant, batch, made, whose_vectors)
        return True

    async def _hits(self, asked: _Asked, found: dict[str, Any]) -> list[Recalled]:
        question = asked.question
        ranked = rank(
            [
                Candidate(at, (session, epoch, seq), lexical, semantic, asks, speaker)
                for at, (session, epoch, seq, lexical, semantic, asks, speaker) in enumerate(
                    zip(
                        *(found[name] or () for name in _CANDIDATE),
                        strict=True,
                    )
                )
            ],
            speakers=found["speakers"] or (),
            lexical_weight=lexical_weight(self._embedder) if self._embedder else LEXICAL_WEIGHT,
        )
        took = {"lexical": (found["word_seconds"] or 0) * 1000}
        if asked.vector is not None:
            took["semantic"] = (found["near_seconds"] or 0) * 1000
        best = ranked[: question.limit]
        events = await self._events(asked, found, best)
        # One that was cleared since the search is no hit.
        gone = {one.candidate.key for one in best} - events.keys()
        return to_hits(
            [one for one in ranked if one.candidate.key not in gone],
            events,
            question.limit - len(gone),
            asked=asked.lexemes,
            degraded=_problems(asked.degraded, found["waiting"]),
            milliseconds=took if question.explain else None,
        )

    async def _events(
        self, asked: _Asked, found: dict[str, Any], ranked: Sequence[Ranked]
    ) -> dict[int, Found]:
        """Return the events of the hits; large bodies are read only now."""
        best = [one.candidate.key for one in ranked]
        bodies = {at: found["bodies"][at] for at in best}
        large = [at for at, body in bodies.items() if body is None]
        if large:
            ids = ([found[name][at] for at in large] for name in ("sessions", "ids"))
            for place, body in await self._fetch(_SQL["bodies"], self._tenant, *ids):
                bodies[large[place - 1]] = body
        return {
            at: Found(
                self._event(found, at, body),
                {asked.lexemes[int(one) - 1] for one in found["matched"][at].split(",") if one},
                found["borrows"][at],
            )
            for at, body in bodies.items()
            if body is not None
        }

    def _event(self, found: dict[str, Any], at: int, body: str) -> Event:
        agent, session, kind = (found[name][at] for name in ("agents", "sessions", "types"))
        rest = (found[name][at] for name in ("ids", "runs", "times"))
        return LogEntry(agent, session, kind, body, *rest).to_event(
            found["epochs"][at], found["seqs"][at]
        )

    async def _most_recent(self, scope: EventScope, limit: int) -> list[Recalled]:
        sql, agent = whose(_SQL["most_recent"], scope)
        filters = (*_filters(scope), *payload_filter(scope))
        rows = await self._engine.search(sql, self._tenant, agent, limit, *filters)
        events = [LogEntry(*row[:7]).to_event(row[7], row[8]) for row in rows]
        return [Recalled(event, 1.0, ("recent",), {}) for event in events]

    async def _embed_question(self, question: RecallQuestion) -> _Asked:
        """Return a question with its vector, or with the reason why it has none."""
        lexemes = list(dict.fromkeys(tokenize(question.text)))
        asked = _Asked(question, lexemes, names_in(question.text))
        if self._embedder is None:
            return asked
        try:
            [vector] = await embed_texts(self._embedder, [question.text], mode="query")
        except EngineError as error:
            _log.warning("recall by words only: %s", error)
            return asked.with_problem(f"recall by words only: {error}")
        return _Asked(question, lexemes, asked.names, vector)

    async def _embed_tail(self, asked: _Asked, found: dict[str, Any]) -> _Asked:
        """Embed the waiting events if they are few. Many are left to an embedding worker."""
        embedder, model = self._embedder, found["model"]
        if embedder is None:
            return asked
        if model not in {None, embedder.name}:
            # Two programs with different embedders would undo each other's work: a worker decides.
            return asked.with_problem(
                f"recall by words only: the log is embedded by {model}, not by {embedder.name}: "
                "run `holdfast embed run`",
                vector=False,
            )
        if not found["may_index"]:
            return asked.with_problem("some events have no embedding yet: the role may not write")
        try:
            if model is None:
                await self._queue.adopt(
                    embedder.name, embedder.dimension, reads_context=reads_context(embedder)
                )
        except InvalidInputError as error:
            return asked.with_problem(
                f"recall by words only: the embedder {embedder.name}: {error}", vector=False
            )
        batch = await self._queue.tail(found["searched"], TAIL + 1)
        if len(batch.texts) > TAIL:
            return asked.with_problem(
                f"more than {TAIL} events have no embedding yet and are found by words only: "
                "the embedding worker is behind"
            )
        if not batch.ranges:
            return asked
        _, problem = await embed_batch(self._queue, embedder, batch)
        return asked.with_problem(
            f"some events have no embedding yet: {problem}" if problem else ""
        )

    async def _fetch(self, sql: LiteralString, tenant: str, *args: Any) -> Sequence[Any]:
        return await self._engine.fetch(sql, tenant, *args, safe=True)


_COLUMNS = (
    *("searched", "queued", "waiting", "indexing", "may_index", "model", "unembedded", "speakers"),
    *("word_seconds", "near_seconds", "lexicals", "semantics", "matched", "asks", "borrows"),
    *("spoke", "agents", "sessions", "types", "bodies", "ids", "runs", "times", "epochs", "seqs"),
)
"""The columns that ``search_events`` returns."""

_CANDIDATE = ("sessions", "epochs", "seqs", "lexicals", "semantics", "asks", "spoke")
_WAITING = 14
"""How many columns ``waiting_events`` returns."""


def _problems(degraded: str, waiting: int) -> str:
    """Return why a search may have missed events; ``""`` if it did not."""
    if not waiting:
        return degraded
    behind = f"up to {waiting} events are not indexed yet: run `holdfast index`"
    return f"{degraded}; {behind}" if degraded else behind


def _filters(scope: EventScope) -> tuple[Any, ...]:
    """Return the filters of a scope, in the order in which the statements take them."""
    return (scope.session, scope.types, scope.since, scope.until)
