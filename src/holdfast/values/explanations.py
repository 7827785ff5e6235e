"""Why recall found an event: the words, the arms and the rules that counted."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ArmScore:
    """The score that one arm (words or vectors) of a search gave to an event, and its rank.

    >>> ArmScore(score=2.3, rank=1).rank
    1
    """

    score: float
    """The BM25 score of the arm ``lexical``, or the cosine similarity of the arm ``semantic``."""

    rank: int
    """1 is the best; candidates with equal scores are ranked by their position in the log."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why recall returned an event: ``recall(..., explain=True)`` adds it to each hit.

    >>> Explanation(words=("tide",), arms={"lexical": ArmScore(2.3, 1)}).added
    {}
    """

    words: tuple[str, ...] = ()
    """The lexemes of the question that are in the event's own text, its speaker or its day."""

    borrowed: tuple[str, ...] = ()
    """The lexemes that are only in the question that the event answers."""

    arms: dict[str, ArmScore] = field(default_factory=dict)
    """The score by arm: ``lexical``, ``semantic``, or ``recent`` if the question was blank."""

    added: dict[str, float] = field(default_factory=dict)
    """What each rule added to the lexical score: ``asks`` (below 0), ``speaker``, ``session`` and
    ``near``; ``neighbour`` if ``neighbours`` was asked for."""

    milliseconds: dict[str, float] = field(default_factory=dict)
    """How long each arm took, for the whole search; the same in all of its hits."""
