"""Converts the ranked candidates of a search to hits, in the same way for every engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.values.events import Event, Recalled
from holdfast.values.explanations import ArmScore, Explanation
from holdfast.values.recall_rules import ASKS_WEIGHT, Candidate, Ranked, in_order, own_text
from holdfast.values.text import tokenize


@dataclass(frozen=True, slots=True)
class Found:
    """An event that a search found, and the lexemes of the question that it is indexed by.

    >>> from holdfast.values.identity import AgentId
    >>> event = Event(AgentId.parse("a1"), "s1", "decision", {"use": "postgres"})
    >>> Found(event, {"postgr"}).borrows
    False
    """

    event: Event
    lexemes: Collection[str] = ()
    borrows: bool = False
    """Whether it is also indexed by the words of a question that it answers."""


def to_hits(
    ranked: Sequence[Ranked],
    found: Mapping[Any, Found],
    limit: int,
    *,
    asked: Sequence[str] = (),
    degraded: str = "",
    milliseconds: Mapping[str, float] | None = None,
) -> list[Recalled]:
    """Return the first ``limit`` ranked candidates as hits.

    ``found`` has their events, by the key of the candidate. ``asked`` are the lexemes of the
    question. The hits are explained if ``milliseconds`` is given; then ``ranked`` must be all
    candidates. ::

        hits = to_hits(rank(candidates), found, limit, asked=tokenize(text))
    """
    words = tuple(dict.fromkeys(asked))
    ranks = None if milliseconds is None else _ranks([one.candidate for one in ranked])
    hits = []
    for one in ranked[:limit]:
        hit = found[one.candidate.key]
        own, borrowed = _matched(hit, words)
        explanation = None
        if ranks is not None and milliseconds is not None:
            explanation = Explanation(
                own, borrowed, ranks[one.candidate.key], _added(one), dict(milliseconds)
            )
        found_by = (*one.found_by, "answer") if borrowed else one.found_by
        hits.append(
            Recalled(hit.event, one.score, found_by, dict(one.scores), degraded, explanation)
        )
    return hits


def _matched(hit: Found, asked: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which lexemes are in the event's own text, and which only in the text it answers."""
    words = [one for one in asked if one in hit.lexemes]
    if not words or not hit.borrows:
        return tuple(words), ()
    event = hit.event
    own = set(tokenize(own_text(event.type, event.payload, event.occurred_at)))
    return (
        tuple(one for one in words if one in own),
        tuple(one for one in words if one not in own),
    )


def _ranks(candidates: Sequence[Candidate]) -> dict[Any, dict[str, ArmScore]]:
    by_position = sorted(candidates, key=lambda one: one.position)
    ranks: dict[Any, dict[str, ArmScore]] = {one.key: {} for one in by_position}
    arms = {
        "lexical": [one.lexical or None for one in by_position],
        "semantic": [one.semantic for one in by_position],
    }
    for arm, scores in arms.items():
        known = {at: score for at, score in enumerate(scores) if score is not None}
        for rank, at in enumerate(in_order(known, known.__getitem__), 1):
            ranks[by_position[at].key][arm] = ArmScore(known[at], rank)
    return ranks


def _added(one: Ranked) -> dict[str, float]:
    added: dict[str, float] = {}
    if one.candidate.asks and one.candidate.lexical:
        added["asks"] = (ASKS_WEIGHT - 1) * one.candidate.lexical
    rules = ("speaker", "session", "near")
    return added | {rule: one.scores[rule] for rule in rules if rule in one.scores}
