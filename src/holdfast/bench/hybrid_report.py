"""The results of ``holdfast bench hybrid``, compared with their bars."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from holdfast.bench.hybrid_workload import K, Question, share
from holdfast.bench.latency import percentiles

OPERATIONS = {
    "hot": "read the current task",
    "episodic": "the newest 10 turns",
    "semantic": f"the nearest {K} of all turns",
    "save": "write the current task",
    "record": "record a turn",
    "late": "how late a paced call began",
}
HOT_BAR, FIDELITY_BAR, ARTICLE_BELOW = 0.5, 0.99, 0.8


@dataclass(frozen=True, slots=True)
class Space:
    """How many bytes a contestant stores in Redis and in Postgres."""

    redis_bytes: int
    postgres_bytes: int
    load_seconds: float
    tables: dict[str, int] = field(default_factory=dict)
    """The bytes of the large tables, with their indexes."""

    def to_json(self, agents: int) -> dict[str, Any]:
        """Return the sizes as JSON values, also in megabytes per thousand agents."""
        return asdict(self) | {
            "redis_mb_per_1000_agents": round(self.redis_bytes / agents / 1000, 1),
            "postgres_mb_per_1000_agents": round(self.postgres_bytes / agents / 1000, 1),
        }


@dataclass(slots=True)
class Answers:
    """The quality of a contestant's answers."""

    rows: list[int] = field(default_factory=list)
    episodic_rows: list[int] = field(default_factory=list)
    fidelity: dict[bool, list[float]] = field(default_factory=lambda: defaultdict(list))
    recall: list[float] = field(default_factory=list)
    ceiling: list[float] = field(default_factory=list)

    def judge(self, question: Question, found: Sequence[int]) -> None:
        """Compare an answer with the nearest turns, and with those about the subject.

        ::

            answers.judge(question, [3, 14, 15, 92, 65])
        """
        self.rows.append(len(found))
        self.fidelity[question.shared].append(share(found, question.exact))
        self.recall.append(share(found, question.relevant))
        self.ceiling.append(share(list(question.exact), question.relevant))

    def to_json(self) -> dict[str, Any]:
        """Return the quality as JSON values; empty if there were no questions."""
        if not self.rows:
            return {}
        both = [*self.fidelity[False], *self.fidelity[True]]
        return {
            "questions": len(self.rows),
            "rows_mean": round(statistics.fmean(self.rows), 3),
            "rows_least": min(self.rows),
            "fidelity_5": round(statistics.fmean(both), 4),
            "fidelity_5_own_subjects": _mean(self.fidelity[False]),
            "fidelity_5_shared_subjects": _mean(self.fidelity[True]),
            "recall_5": _mean(self.recall),
            "recall_5_of_exact": _mean(self.ceiling),
            "episodic_rows_least": min(self.episodic_rows, default=0),
        }


@dataclass(slots=True)
class Report:
    """The results of all contestants under both kinds of load."""

    agents: int
    turns: int
    dimension: int
    rounds: int
    latency: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, Answers] = field(default_factory=dict)
    space: dict[str, Space] = field(default_factory=dict)
    cannot: dict[str, dict[str, str]] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)

    def add(self, load: str, contestant: str, operation: str, seconds: Sequence[float]) -> None:
        """Add the times of one operation.

        ::

            report.add("paced", "hybrid", "hot", [0.0002, 0.0003])
        """
        row = {"load": load, "contestant": contestant, "operation": operation}
        self.latency.append(row | {"calls": len(seconds)} | percentiles(seconds))

    def find(self, load: str, contestant: str, operation: str) -> dict[str, Any] | None:
        """Return one row of the latencies, or ``None``."""
        wanted = (load, contestant, operation)
        return next(
            (
                row
                for row in self.latency
                if (row["load"], row["contestant"], row["operation"]) == wanted
            ),
            None,
        )

    def bars(self) -> dict[str, dict[str, Any]]:
        """Return the bars: the target and the measured value of each."""
        found: dict[str, dict[str, Any]] = {}
        ours, theirs = (
            self.find("paced", "hybrid", "hot"),
            self.find("paced", "postgres only", "hot"),
        )
        if ours and theirs:
            ratio = round(ours["p95_us"] / theirs["p95_us"], 2)
            name = "p95 of a paced hot read, hybrid against Postgres only"
            found[name] = _at_most(ratio, HOT_BAR)
        for contestant in ("postgres only", "hybrid"):
            answer = self.answers[contestant].to_json() if contestant in self.answers else {}
            if answer:
                name = f"fidelity@{K}, {contestant}"
                found[name] = _at_least(answer["fidelity_5"], FIDELITY_BAR)
                name = f"rows of the {K} that were asked for, at least, {contestant}"
                found[name] = _at_least(answer["rows_least"], K)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "agents": self.agents,
            "turns": self.turns,
            "dimension": self.dimension,
            "rounds": self.rounds,
            "mix": "70 % hot, 20 % episodic, 10 % semantic; paced: 10 calls a second an agent",
            "latency": self.latency,
            "answers": {name: one.to_json() for name, one in self.answers.items()},
            "space": {name: one.to_json(self.agents) for name, one in self.space.items()},
            "cannot": self.cannot,
            "plans": {name: plan for name, plan in self.plans.items() if plan},
            "bars": self.bars(),
            "article_below": ARTICLE_BELOW,
        }


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 4) if values else 0.0


def _at_most(got: float, bar: float) -> dict[str, Any]:
    return {"bar": bar, "got": got, "met": got <= bar}


def _at_least(got: float, bar: float) -> dict[str, Any]:
    return {"bar": bar, "got": got, "met": got >= bar}
