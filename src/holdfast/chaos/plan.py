"""The plan of a run: how much work, for how long, and which faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from holdfast.chaos.schedule import PARTS, Fault, Kind, Part, counts_within, schedule

Topology: TypeAlias = Literal["single", "standby", "sentinel", "cluster"]


def replicated(*, postgres: Topology, valkey: Topology) -> dict[str, Topology]:
    """Return those servers that have replicas, with their topology.

    >>> replicated(postgres="standby", valkey="single")
    {'postgres': 'standby'}
    """
    both: dict[str, Topology] = {"postgres": postgres, "valkey": valkey}
    return {name: kind for name, kind in both.items() if kind != "single"}


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run; the same plan gives the same faults at the same times.

    >>> Plan.within(60, seed=7).faults == Plan.within(60, seed=7).faults
    True
    """

    seconds: float = 15.0
    """How long faults are injected; the work and the checks take a while longer."""
    counts: Mapping[Kind, int] = field(default_factory=dict)
    """How many faults of each kind."""
    seed: int = 1
    parts: tuple[Part, ...] = PARTS
    tasks: int = 40
    linked: int = 0
    """How many tasks with children and messages. If any, a schedule also runs every minute."""
    workers: int = 3
    task_pace_seconds: float = 1.0
    agent_processes: int = 2
    sessions: int = 5
    """Number of agents in a process, with one session each."""
    agent_pace_seconds: float = 0.1
    consolidators: int = 2
    level: str = "fsync"
    """The agents' acknowledgement level, on servers that the run starts."""
    limit_seconds: float = 300.0
    """Maximum wait after the last fault until all work is done."""
    postgres: Topology = "single"
    """``standby``: a primary with a synchronous standby."""
    valkey: Topology = "single"
    """``sentinel`` or ``cluster``: with replicas."""
    until_fallback: bool = False
    """Whether a long outage of Valkey lasts until an event was written to Postgres as a fallback.
    Only for plans that kill no agent, because an agent cannot start without Valkey."""

    @classmethod
    def within(
        cls,
        seconds: float,
        *,
        seed: int = 1,
        parts: tuple[Part, ...] = PARTS,
        postgres: Topology = "single",
        valkey: Topology = "single",
    ) -> Plan:
        """Return a plan with as many faults and as much work as fit into ``seconds``.

        With replicas of Valkey the agents write at level ``committed``: no other level survives the
        promotion of a replica that is behind.

        >>> Plan.within(60).tasks
        90
        """
        return cls(
            seconds=seconds,
            counts=counts_within(
                seconds, parts, replicated=replicated(postgres=postgres, valkey=valkey)
            ),
            postgres=postgres,
            valkey=valkey,
            level="fsync" if valkey == "single" else "committed",
            seed=seed,
            parts=parts,
            tasks=max(12, round(seconds * 1.5)),
            task_pace_seconds=1.0 if seconds >= 30 else 0.5,
            limit_seconds=seconds + 240,
        )

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults of the run, in order of time."""
        return schedule(self.seed, self.seconds, self.counts)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return asdict(self)
