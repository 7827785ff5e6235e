"""A fact that an agent knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

RecallMode: TypeAlias = Literal["text", "vector", "graph", "hybrid"]
MODES: tuple[str, ...] = get_args(RecallMode)


@dataclass(frozen=True, slots=True)
class Memory:
    """A fact, and how well it answers the query that found it.

    >>> Memory("Ravi prefers Python", 0.9, "m1", {}).superseded_by is None
    True
    """

    content: str
    score: float
    """Relevance to the query, from 0 to 1; 1 if there was no query."""

    id: str
    metadata: dict[str, Any]
    topic: str = ""
    confidence: float = 1.0
    source: str = ""
    """Where the fact comes from, such as a session or a document."""

    entities: tuple[str, ...] = ()
    """The ids of the entities of the graph that the fact is about."""

    created_at: datetime | None = None
    expires_at: datetime | None = None
    superseded_by: str | None = None
    """The id of the memory that replaced this one."""

    found_by: tuple[str, ...] = ()
    """The parts of the search that found it: ``text``, ``vector``, ``graph``, or ``recent``."""

    degraded: str = ""
    """Why the search could not use all that its mode needs; empty if it could."""

    subject: str = ""
    """The id of the person whom it is about, whose erasure deletes it; empty for its owner."""
