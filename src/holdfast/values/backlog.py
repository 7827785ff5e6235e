"""How much work waits: in the queues of all tenants, and for a connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

OTHER = "other"
"""Stands for all agents that the caller did not name."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits in the queues of all tenants, in numbers alone.

    >>> Backlog({("submitted", "writer"): 2}).tasks["submitted", "writer"]
    2
    """

    tasks: dict[tuple[str, str], int] = field(default_factory=dict)
    """How many tasks that have not ended, by state and agent; all other agents are ``other``."""

    oldest_due_seconds: float = 0.0
    """For how long the oldest task has been due that no worker has claimed; 0 if there is none."""

    unembedded_events: int = 0
    """An upper bound on the number of indexed events that wait for a vector."""

    dead_letters: int = 0
    """Events that could not be stored as they are, and that nobody has replayed or discarded."""


class PoolUse(NamedTuple):
    """How the connections of an engine are used at a moment.

    >>> PoolUse(size=10, in_use=3, waiting=0).in_use
    3
    """

    size: int
    """How many connections it may have."""
    in_use: int
    """How many calls have one."""
    waiting: int
    """How many calls wait for one."""
