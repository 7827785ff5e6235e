"""The scores that ``holdfast bench recall`` computes from the answers, and their bars."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from holdfast.bench.conversations import Question

BUDGETS = (500, 1000, 2000)
CHARACTERS_PER_TOKEN = 4
DAY_TOKENS = 8
"""How many tokens of a budget the date before a line takes."""

LOCOMO = (10, 5882, 1982)
"""The number of conversations, turns and questions of LoCoMo: only this set has bars."""

BARS = {
    "R@5 by words": 0.69,
    "R@5 with the static embedder": 0.70,
    "R@5 with a model that reads context": 0.75,
    "evidence in 1,000 tokens by words": 0.82,
    "evidence in 1,000 tokens with a model that reads context": 0.86,
    "share of the questions answered alike in memory and on Postgres, words": 1.0,
    "share of the questions answered alike in memory and on Postgres, words + embedder": 0.99,
    "p50 of words at 500 events of one of 50 agents, in ms": 3.0,
}
AT_MOST = "p50"
"""The prefix of the bars that are maximums; the others are minimums."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The turns that were found for a question, the best first."""

    question: Question
    found: list[str]
    """The ids of the first ten turns."""

    lines: list[tuple[str, int]] = field(default_factory=list)
    """The ids of as many turns as a prompt can hold, and the characters of each."""

    def recall(self, k: int) -> float:
        """Return the share of the evidence that is among the first ``k`` turns."""
        return self._share(self.found[:k])

    def reciprocal_rank(self) -> float:
        """Return 1 divided by the rank of the first turn that is evidence; 0 if there is none."""
        evidence = self.question.evidence
        return next((1 / at for at, turn in enumerate(self.found, 1) if turn in evidence), 0.0)

    def evidence_within(self, tokens: int) -> float:
        """Return the share of the evidence in a prompt of this size that is filled by rank."""
        inside, left = [], float(tokens)
        for turn, characters in self.lines:
            cost = characters / CHARACTERS_PER_TOKEN + DAY_TOKENS
            if cost <= left:
                left -= cost
                inside.append(turn)
        return self._share(inside)

    def _share(self, found: Iterable[str]) -> float:
        return len(self.question.evidence & set(found)) / len(self.question.evidence)


@dataclass(frozen=True, slots=True)
class Score:
    """The mean scores of the questions of one kind."""

    questions: int
    recall_5: float
    recall_10: float
    mrr: float
    evidence_500: float
    evidence_1000: float
    evidence_2000: float


def score(answers: Sequence[Answer]) -> Score:
    """Return the means over questions.

    ::

        print(score(answers).recall_5)
    """
    values = {"recall_5": [one.recall(5) for one in answers]}
    values["recall_10"] = [one.recall(10) for one in answers]
    values["mrr"] = [one.reciprocal_rank() for one in answers]
    for tokens in BUDGETS:
        values[f"evidence_{tokens}"] = [one.evidence_within(tokens) for one in answers]
    means = {name: round(statistics.fmean(found), 4) for name, found in values.items()}
    return Score(len(answers), **means)


@dataclass(frozen=True, slots=True)
class Method:
    """One method of recall on one engine, with its scores."""

    engine: str
    method: str
    all: Score
    by_category: dict[str, Score]
    p50_ms: float
    p95_ms: float


@dataclass(slots=True)
class Report:
    """The results of all methods on one file."""

    data: str
    conversations: int
    turns: int
    questions: int
    embedder: str
    reads_context: bool = False
    methods: list[Method] = field(default_factory=list)
    alike: dict[str, float] = field(default_factory=dict)
    """By method, the share of questions whose first ten turns are equal on both engines."""

    latency: dict[str, Any] = field(default_factory=dict)
    index: dict[str, Any] = field(default_factory=dict)
    """The tables of the index on Postgres, and their bytes per turn."""

    def add(
        self, what: tuple[str, str], answers: Sequence[Answer], times: dict[str, float]
    ) -> None:
        """Add the answers and times of a method.

        ::

            report.add(("postgres", "words"), answers, {"p50_ms": 1.0, "p95_ms": 2.0})
        """
        engine, method = what
        kinds = sorted({one.question.category for one in answers})
        by_category = {
            kind: score([one for one in answers if one.question.category == kind]) for kind in kinds
        }
        self.methods.append(Method(engine, method, score(answers), by_category, **times))

    def bars(self) -> dict[str, dict[str, Any]]:
        """Return the bars: the target and the measured value of each."""
        values: dict[str, float] = {}
        if (self.conversations, self.turns, self.questions) == LOCOMO:
            values |= self._quality()
        for method, share in self.alike.items():
            name = f"share of the questions answered alike in memory and on Postgres, {method}"
            values[name] = share
        if self.latency:
            name = "p50 of words at 500 events of one of 50 agents, in ms"
            values[name] = self.latency["words"]["p50_ms"]
        return {
            name: {
                "bar": bar,
                "got": values[name],
                "met": values[name] <= bar if name.startswith(AT_MOST) else values[name] >= bar,
            }
            for name, bar in BARS.items()
            if name in values
        }

    def _quality(self) -> dict[str, float]:
        """Return the scores that have bars: of both engines, the lower one."""
        words = [one.all for one in self.methods if one.method == "words"]
        both = [one.all for one in self.methods if one.method == "words + embedder"]
        values = {
            "R@5 by words": min(one.recall_5 for one in words),
            "evidence in 1,000 tokens by words": min(one.evidence_1000 for one in words),
        }
        if both and self.embedder == "wordllama-256":
            values["R@5 with the static embedder"] = min(one.recall_5 for one in both)
        if both and self.reads_context:
            kind = "with a model that reads context"
            values[f"R@5 {kind}"] = min(one.recall_5 for one in both)
            values[f"evidence in 1,000 tokens {kind}"] = min(one.evidence_1000 for one in both)
        return values

    def to_json(self) -> dict[str, Any]:
        """Return the report, with its bars, as a dict for JSON."""
        return asdict(self) | {"bars": self.bars()}
