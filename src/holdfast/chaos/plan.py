"""How much work a run does, for how long, and what happens meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from holdfast.chaos.schedule import PARTS, Fault, Kind, Part, counts_within, schedule


@dataclass(frozen=True, slots=True)
class Plan:
    """A run, before it begins; the same plan has the same faults at the same moments.

    >>> Plan.within(60, seed=7).faults == Plan.within(60, seed=7).faults
    True
    """

    seconds: float = 15.0
    """How long faults go on; work and checks take a while after."""
    counts: Mapping[Kind, int] = field(default_factory=dict)
    """How many faults of each kind."""
    seed: int = 1
    parts: tuple[Part, ...] = PARTS
    tasks: int = 40
    workers: int = 3
    task_pace_seconds: float = 1.0
    agent_processes: int = 2
    sessions: int = 5
    """How many agents, with a session each, are in a process."""
    agent_pace_seconds: float = 0.1
    consolidators: int = 2
    level: str = "fsync"
    """What an acknowledgement of the agents means, on servers of our own."""
    limit_seconds: float = 300.0
    """How long to wait at most until all work is done, after the last fault."""
    until_fallback: bool = False
    """Whether a Valkey that is long away stays so until an event has gone past it. Only for plans
    that kill no agent: one that begins without Valkey does not begin."""

    @classmethod
    def within(cls, seconds: float, *, seed: int = 1, parts: tuple[Part, ...] = PARTS) -> Plan:
        """As many faults and as much work as fit into so many seconds.

        >>> Plan.within(60).tasks
        90
        """
        return cls(
            seconds=seconds,
            counts=counts_within(seconds, parts),
            seed=seed,
            parts=parts,
            tasks=max(12, round(seconds * 1.5)),
            task_pace_seconds=1.0 if seconds >= 30 else 0.5,
            limit_seconds=seconds + 240,
        )

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What happens, in order."""
        return schedule(self.seed, self.seconds, self.counts)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)
