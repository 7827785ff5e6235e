"""The schedule of faults: a pure function of a seed, so that a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Part: TypeAlias = Literal["tasks", "memory"]
PARTS: tuple[Part, ...] = get_args(Part)

Kind: TypeAlias = Literal[
    "kill worker",
    "kill agent",
    "kill consolidator",
    "kill valkey",
    "kill postgres",
    "freeze worker",
    "freeze consolidator",
    "cut postgres",
    "cut valkey",
    "delay postgres",
    "delay valkey",
    "silence postgres",
    "silence valkey",
    "deafen postgres",
    "deafen valkey",
    "fill postgres",
    "fill valkey",
    "failover postgres",
    "failover valkey",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds of faults: a verb and its target. ``VERBS`` explains the verbs."""

VERBS = {
    "kill": "SIGKILL, without a warning",
    "freeze": "SIGSTOP for longer than a lease, then SIGCONT",
    "cut": "every connection is reset",
    "delay": "every byte comes late, also those of clients that have gone",
    "silence": "nothing goes either way, then the connections are reset: half-open",
    "deafen": "requests arrive and answers are lost, then the connections are reset",
    "fill": "the disk is full, then it is not",
    "failover": "SIGKILL of a primary, whose replica is promoted; then it comes back as a replica",
}

_NEEDS: dict[str, frozenset[Part]] = {
    "worker": frozenset({"tasks"}),
    "agent": frozenset({"memory"}),
    "consolidator": frozenset({"memory"}),
    "valkey": frozenset({"memory"}),
    "postgres": frozenset({"tasks", "memory"}),
}
"""The parts of a run that have this target."""

_PER_MINUTE: dict[Kind, float] = {
    "kill worker": 14,
    "kill agent": 6,
    "kill consolidator": 8,
    "kill valkey": 2,
    "kill postgres": 2,
    "freeze worker": 9,
    "freeze consolidator": 2,
    "cut postgres": 2,
    "cut valkey": 2,
    "delay postgres": 1,
    "delay valkey": 1,
    "silence postgres": 1,
    "silence valkey": 1,
    "deafen postgres": 1,
    "deafen valkey": 1,
    "fill postgres": 1,
    "fill valkey": 1,
    "failover postgres": 1.5,
    "failover valkey": 1.5,
}
_FAILOVER_ONLY: dict[str, frozenset[str]] = {
    "postgres": frozenset({"kill", "fill"}),
    "valkey": frozenset({"kill", "fill", "cut", "delay", "silence", "deafen"}),
}
"""The verbs that a server with replicas does not get: a failover kills it, several servers have no
one disk, and clients find the nodes behind Sentinel and of a cluster past any proxy."""
_SECONDS: dict[str, tuple[float, float]] = {
    "freeze": (3.0, 4.0),
    "delay": (0.5, 4.0),
    "silence": (0.5, 4.5),
    "deafen": (0.3, 2.0),
    "fill": (0.5, 2.0),
}
"""Range of the duration of a fault, in seconds."""
_AWAY_SECONDS = (5.5, 6.5)
"""How long every second killed server stays down: longer than writers wait for it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its time, kind, duration, and which of several targets it hits.

    >>> Fault(1.5, "kill worker", pick=0.5).victim
    'worker'
    """

    at_seconds: float
    kind: Kind
    pick: float = 0.0
    """A number from 0 to 1 that selects one of the current processes of the kind."""
    lasts_seconds: float = 0.0

    @property
    def verb(self) -> str:
        """The action of the fault, such as ``kill``."""
        return self.kind.partition(" ")[0]

    @property
    def victim(self) -> str:
        """The target of the fault, such as ``worker``."""
        return self.kind.partition(" ")[2]


def counts_within(
    seconds: float, parts: Iterable[Part] = PARTS, *, replicated: Iterable[str] = ()
) -> dict[Kind, int]:
    """Return how many faults of each kind fit into ``seconds``; from 30 seconds on, at least one.

    Every target is killed at least once, however short the run is. ``replicated`` are the servers
    that have replicas and fail over.

    >>> counts_within(60, ["tasks"])["kill worker"]
    14
    >>> counts_within(60, ["tasks"], replicated=["postgres"])["failover postgres"]
    2
    """
    several, wanted = frozenset(replicated), frozenset(parts)
    counts: dict[Kind, int] = {}
    for kind, rate in _PER_MINUTE.items():
        verb, _, victim = kind.partition(" ")
        if not _NEEDS[victim] & wanted or not _happens(verb, victim, several):
            continue
        count = round(rate * seconds / 60)
        least = 1 if seconds >= 30 or verb in {"kill", "failover"} else 0
        counts[kind] = max(count, least)
    return counts


def _happens(verb: str, victim: str, replicated: frozenset[str]) -> bool:
    if victim in replicated:
        return verb not in _FAILOVER_ONLY[victim]
    return verb != "failover"


def schedule(seed: int, seconds: float, counts: Mapping[Kind, int]) -> tuple[Fault, ...]:
    """Return the faults of a run in order; the same arguments give the same faults on any machine.

    >>> one, two = (schedule(7, 30, {"kill worker": 3}) for _ in range(2))
    >>> one == two
    True
    """
    rng = random.Random(seed)  # noqa: S311 - a schedule that can be repeated
    kinds = [kind for kind in KINDS for _ in range(counts.get(kind, 0))]
    rng.shuffle(kinds)
    slot = seconds / max(1, len(kinds))
    faults = []
    for at, kind in enumerate(kinds):
        verb, _, victim = kind.partition(" ")
        lasts = rng.uniform(*_SECONDS.get(verb, (0.0, 0.0)))
        if verb == "kill" and victim in {"valkey", "postgres"}:
            # Writers wait for the end of a short outage and use the fallback in a long one: test
            # both.
            lasts = rng.uniform(*_AWAY_SECONDS) if kinds[:at].count(kind) % 2 == 0 else 0.0
        when = (at + rng.random()) * slot
        faults.append(Fault(round(when, 3), kind, round(rng.random(), 6), round(lasts, 3)))
    return tuple(faults)


def sigkills(faults: Iterable[Fault]) -> int:
    """Return how many faults are a SIGKILL.

    >>> sigkills(schedule(1, 600, counts_within(600))) >= 200
    True
    """
    return sum(fault.verb in {"kill", "failover"} for fault in faults)
