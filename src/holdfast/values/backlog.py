"""How much work waits: in the queues of all tenants, and for a connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

OTHER = "other"
"""Stands for all agents that the caller did not name."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many tasks, events and dead letters wait, counted over all tenants.

    >>> Backlog({("submitted", "writer"): 2}).tasks["submitted", "writer"]
    2
    """

    tasks: dict[tuple[str, str], int] = field(default_factory=dict)
    """How many tasks have not ended, by state and agent; agents not named are ``other``."""

    oldest_due_seconds: float = 0.0
    """How long the oldest unclaimed task has been ready to run; 0 if there is none."""

    unembedded_events: int = 0
    """An upper bound on the number of indexed events that wait for a vector."""

    dead_letters: int = 0
    """Events that could not be stored as they are, and were not replayed or discarded yet."""


class PoolUse(NamedTuple):
    """How many connections of an engine are in use at a moment.

    >>> PoolUse(size=10, in_use=3, waiting=0).in_use
    3
    """

    size: int
    """How many connections the engine may have."""
    in_use: int
    """How many calls use a connection."""
    waiting: int
    """How many calls wait for a connection."""
