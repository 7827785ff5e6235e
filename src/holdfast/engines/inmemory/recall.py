"""Recall over the session log: candidates by words and by meaning, ranked by the rules."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from holdfast.engines.inmemory.event_index import EventIndex, Row
from holdfast.engines.inmemory.session_log import SessionLog
from holdfast.spi.embedding import (
    Embedder,
    embed_possible,
    embed_texts,
    lexical_weight,
    reads_context,
)
from holdfast.spi.episodes import (
    MAX_RECALLED_AGENTS,
    EventScope,
    NearestEvents,
    RecallQuestion,
    too_many_agents,
)
from holdfast.values.errors import EngineError
from holdfast.values.events import Recalled
from holdfast.values.recall_hits import Found, to_hits
from holdfast.values.recall_rules import (
    CANDIDATES,
    LEXICAL_WEIGHT,
    TIE,
    Candidate,
    in_order,
    rank,
)
from holdfast.values.text import names_in, tokenize

_log = logging.getLogger("holdfast.recall")


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent that is searched: its index, and its events that are in the scope."""

    index: EventIndex
    rows: Mapping[str, Row]
    only: Mapping[str, Row] | None
    """The same events as ``rows``; ``None`` if all of the agent's events are in the scope."""


class Recall:
    """Finds the events of one agent, or of all, by words and by meaning."""

    def __init__(self, log: SessionLog, embedder: Embedder | None) -> None:
        self._log = log
        self._embedder = embedder

    async def search(self, scope: EventScope, question: RecallQuestion) -> list[Recalled]:
        """Return the best events of a scope, by words and by meaning."""
        if not question.text.strip():
            return self._most_recent(scope, question.limit)
        start = time.perf_counter()
        vector, degraded = await self._embed(scope, question.text)
        agents, most = self._agents(scope), max(CANDIDATES, question.limit)
        rows = _merged(agents)
        took = {} if self._embedder is None else {"semantic": _since(start)}

        start = time.perf_counter()
        lexemes = tokenize(question.text)
        words: dict[str, float] = {}
        for one in agents:
            words |= one.index.words.scores(lexemes, only=one.only)
        chosen = dict.fromkeys(_first(words, rows, most))
        took["lexical"] = _since(start)

        near: dict[str, float] = {}
        if vector is not None:
            start = time.perf_counter()
            near = _nearest(agents, vector, most)
            chosen |= dict.fromkeys(_first(near, rows, most))
            for one in agents:
                near |= one.index.vectors.of(vector, (key for key in chosen if key in one.rows))
            took["semantic"] += _since(start)

        ranked = rank(
            [_candidate(key, rows[key], words, near) for key in chosen],
            speakers=self._named(agents, question.text),
            lexical_weight=lexical_weight(self._embedder) if self._embedder else LEXICAL_WEIGHT,
        )
        best = [one.candidate.key for one in ranked[: question.limit]]
        return to_hits(
            ranked,
            {key: self._found(rows[key], lexemes) for key in best},
            question.limit,
            asked=lexemes,
            degraded=degraded,
            milliseconds=took if question.explain else None,
        )

    def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:
        """Return the events of a scope that are nearest to a vector."""
        agents = self._agents(scope)
        if self._log.dimension != len(vector):
            return NearestEvents(self._log.dimension, [])
        rows, near = _merged(agents), _nearest(agents, vector, limit)
        found = [
            # Recall scores run from 0 to 1: a cosine of -1 becomes 0.
            Recalled(
                *(rows[key].event(), (near[key] + 1) / 2, ("semantic",)), {"semantic": near[key]}
            )
            for key in _first(near, rows, limit)
        ]
        return NearestEvents(self._log.dimension, found)

    def _names(self, scope: EventScope) -> list[str]:
        names = self._log.agents_of(scope)
        if len(names) > MAX_RECALLED_AGENTS:
            raise too_many_agents()
        return names

    def _agents(self, scope: EventScope) -> list[_Agent]:
        found = []
        for name in self._names(scope):
            every = self._log.of_agent(name)
            only = None
            if scope != EventScope(name):
                only = {key: row for key, row in every.items() if scope.has(row)}
            found.append(_Agent(self._log.index(name), every if only is None else only, only))
        return found

    def _named(self, agents: Iterable[_Agent], text: str) -> list[str]:
        """Return the keys of the speakers that a question names."""
        speakers = [one.index.speakers for one in agents if one.index.speakers]
        if not speakers:
            return []
        return [name for name in names_in(text) if any(name in one for one in speakers)]

    def _found(self, row: Row, lexemes: Iterable[str]) -> Found:
        words = self._log.index(row.agent).words
        held = {lexeme for lexeme in lexemes if words.holds(row.key, lexeme)}
        return Found(row.event(), held, row.borrows)

    async def _embed(self, scope: EventScope, text: str) -> tuple[list[float] | None, str]:
        """Embed the question and the events that have no vector.

        Returns the question's vector, or ``None`` and the reason.
        """
        embedder, names = self._embedder, self._names(scope)
        if embedder is None:
            return None, ""
        try:
            [asked] = await embed_texts(embedder, [text], mode="query")
        except EngineError as error:
            _log.warning("recall by words only: %s", error)
            return None, f"recall by words only: {error}"
        indexes = [self._log.index(name) for name in names]
        bare = [(index, row) for index in indexes for row in index.bare.values()]
        turns = [index.turn(row) for index, row in bare]
        if not reads_context(embedder):
            turns = [("", said) for _, said in turns]
        vectors, problem = await embed_possible(embedder, turns)
        have, give = self._log.dimension or len(asked), len(asked)
        if have != give:
            return None, f"the embedder {embedder.name} gives {give} numbers, the log {have}"
        self._log.dimension = give
        for (index, row), turn, vector in zip(bare, turns, vectors, strict=True):
            if vector is not None:
                index.embedded(row, turn, vector)
        return asked, f"some events have no embedding yet: {problem}" if problem else ""

    def _most_recent(self, scope: EventScope, limit: int) -> list[Recalled]:
        rows = sorted(
            self._log.of_scope(scope).values(),
            key=lambda row: (row.occurred_at, *row.position),
            reverse=True,
        )
        return [Recalled(row.event(), 1.0, ("recent",), {}) for row in rows[:limit]]


def _merged(agents: list[_Agent]) -> Mapping[str, Row]:
    if len(agents) == 1:
        return agents[0].rows
    return {key: row for one in agents for key, row in one.rows.items()}


def _nearest(agents: list[_Agent], vector: list[float], most: int) -> dict[str, float]:
    near: dict[str, float] = {}
    for one in agents:
        near |= one.index.vectors.nearest(vector, most, one.only)
    return near


def _candidate(
    key: str, row: Row, words: Mapping[str, float], near: Mapping[str, float]
) -> Candidate:
    score = words.get(key, 0.0)
    return Candidate(key, row.position, score, near.get(key), row.asks, row.speaker)


def _first(scores: Mapping[str, float], rows: Mapping[str, Row], most: int) -> list[str]:
    """Return the keys with the ``most`` best scores; ties are ordered by position in the log."""
    keys = list(scores) if most else []
    if most < len(keys):
        values = np.fromiter(scores.values(), dtype=np.float64, count=len(scores))
        least = np.partition(values, -most)[-most]
        while len(close := values[(values < least) & (values > least - TIE)]):
            least = close.min()
        keys = [key for key, score in scores.items() if score >= least]
    keys.sort(key=lambda key: rows[key].position)
    return [keys[at] for at in in_order(range(len(keys)), lambda at: scores[keys[at]])[:most]]


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
