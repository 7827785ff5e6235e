"""The verdict of a run: counts, times, and violated invariants."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

INVARIANTS = {
    "P1": "an acknowledged write is durable",
    "P2": "what was written again after a lost answer is stored once",
    "P3": "after a lease is taken over, no write of the old holder takes effect",
    "P4": "tasks follow only legal edges, and the end is final",
    "P6": "what was acknowledged is read, whichever store has it",
    "P7": "the order of a session is that of its writer",
    "I1": "every submitted task is there, and is completed",
    "I2": "a task ends once",
    "I3": "the log of a task has no gap",
    "I4": "the state of a task is its last log entry",
    "I5": "a step is stored once",
    "I6": "no two leases of a task both had a write accepted",
    "I7": "no task has more attempts than it may",
    "I9": "a submit key is one task",
    "I10": "a context has every message once, in order",
    "I11": "what a task made is byte for byte what it makes without faults",
}
"""The promises (P) and the invariants of tasks (I) that a run checks, by their names."""


@dataclass(slots=True)
class Findings:
    """Violations by invariant, each with what was observed.

    >>> findings = Findings()
    >>> findings.add("P1", "event e7 of s3 is gone")
    >>> findings.texts()
    ['P1 an acknowledged write is durable: event e7 of s3 is gone']
    """

    _seen: dict[str, list[str]] = field(default_factory=dict)

    def add(self, invariant: str, what: str) -> None:
        """Add one violation of an invariant."""
        self._seen.setdefault(invariant, []).append(what)

    def named(self) -> list[str]:
        """Return the violated invariants."""
        return sorted(self._seen)

    def texts(self) -> list[str]:
        """Return a line for each violated invariant."""
        lines = []
        for name in self.named():
            first, *others = self._seen[name]
            more = f" (and {len(others)} more)" if others else ""
            lines.append(f"{name} {INVARIANTS[name]}: {first}{more}")
        return lines


@dataclass(frozen=True, slots=True)
class Times:
    """The count, the median and the maximum of several durations.

    >>> Times.of([3.0, 1.0, 2.0])
    Times(count=3, p50=2.0, max=3.0)
    """

    count: int
    p50: float
    max: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Times | None:
        """Return the statistics; ``None`` if there are no durations."""
        if not seconds:
            return None
        return cls(len(seconds), round(statistics.median(seconds), 2), round(max(seconds), 2))


@dataclass(slots=True)
class TaskCounts:
    """Counts of the tasks by outcome."""

    acknowledged: int = 0
    """Tasks whose submission was acknowledged."""
    completed: int = 0
    lost: int = 0
    duplicated: int = 0
    """Second tasks with the same submit key, and steps stored twice."""
    illegal_transitions: int = 0
    zombie_writes_refused: int = 0
    zombie_writes_accepted: int = 0
    submit_retries: int = 0
    leases_lost: int = 0
    claims: int = 0
    steps_run: int = 0
    steps_stored: int = 0


@dataclass(slots=True)
class LinkedCounts:
    """Counts of tasks with children, messages and a schedule."""

    acknowledged: int = 0
    """Parents whose submission was acknowledged."""
    completed: int = 0
    children: int = 0
    sent: int = 0
    """Messages that were acknowledged; each parent returns those that it received."""
    ticks: int = 0
    retries: int = 0


@dataclass(slots=True)
class MemoryCounts:
    """Counts of the events by outcome."""

    acknowledged: int = 0
    stored: int = 0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    """Events that are stored before one that the same writer had acknowledged earlier."""
    reordered_at_handover: int = 0
    """Events that are stored before a fallback write that a killed writer had in flight; order is
    not promised across such a break."""
    fallback_events: int = 0
    """Events that went to Postgres directly, because Valkey did not answer."""
    retries: int = 0
    gaps_reported: int = 0
    """Ranges that a session reports as possibly lost; it errs on the safe side."""
    dead_letters: int = 0
    longest_append_seconds: float = 0.0
    drain_seconds: float = 0.0


@dataclass(slots=True)
class Verdict:
    """The result of a run."""

    seed: int
    broken: list[str] = field(default_factory=list)
    """The violated invariants, each with what was observed."""
    unproved: list[str] = field(default_factory=list)
    """Invariants that this run did not exercise: it was too short, or the case did not occur."""
    not_done: dict[str, str] = field(default_factory=dict)
    """Faults that could not be injected on this machine, with the reason."""
    faults: dict[str, int] = field(default_factory=dict)
    sigkills: int = 0
    tasks: TaskCounts | None = None
    linked: LinkedCounts | None = None
    memory: MemoryCounts | None = None
    recovery_seconds: dict[str, Times | None] = field(default_factory=dict)
    """Time from the death of a server until a write was acknowledged again, and from the death of a
    worker until another had claimed its task."""
    processes_ended: int = 0
    """Processes that ended without being killed, most because their stores were down at start."""
    tenant: str = ""
    logs: str = ""
    """Path of the logs of the processes, if an invariant is violated."""
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        """Whether no invariant was violated.

        >>> Verdict(seed=1).held
        True
        """
        return not self.broken

    def totals(self) -> dict[str, int]:
        """Return the sums over tasks and events of the counts that the invariants are about.

        >>> Verdict(seed=1, memory=MemoryCounts(acknowledged=7)).totals()["acknowledged"]
        7
        """
        tasks, memory = self.tasks or TaskCounts(), self.memory or MemoryCounts()
        return {
            "acknowledged": tasks.acknowledged + memory.acknowledged,
            "lost": tasks.lost + memory.lost,
            "duplicated": tasks.duplicated + memory.duplicated,
            "out_of_order": memory.out_of_order,
            "illegal_transitions": tasks.illegal_transitions,
            "zombie_writes_refused": tasks.zombie_writes_refused,
            "zombie_writes_accepted": tasks.zombie_writes_accepted,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        return {"verdict": "held" if self.held else "broken", **self.totals(), **asdict(self)}
