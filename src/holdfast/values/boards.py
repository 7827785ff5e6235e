"""The cards of a to-do board."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class TaskStatus(StrEnum):
    """The status of a card.

    >>> TaskStatus("in_progress") is TaskStatus.IN_PROGRESS
    True
    >>> TaskStatus.ABANDONED.terminal, TaskStatus.FAILED.terminal
    (True, False)
    """

    PLANNED = "planned"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABANDONED = "abandoned"

    @property
    def terminal(self) -> bool:
        """Whether the status is final: only ``force_retry`` can change it."""
        return self in {TaskStatus.SUCCEEDED, TaskStatus.ABANDONED}


@dataclass(frozen=True, slots=True)
class Task:
    """One card of a board.

    >>> Task("t1", "write the report").status
    <TaskStatus.PLANNED: 'planned'>
    """

    id: str
    title: str
    status: TaskStatus = TaskStatus.PLANNED
    order: int = 0
    retry_count: int = 0
    note: str = ""
    version: int = field(default=1, compare=False)
    """1 for a new card; each change adds 1."""
    updated_at: datetime | None = field(default=None, compare=False)
    """When the card was last changed. ``None`` if an older version of Holdfast wrote it."""


Card = Task
"""Another name for ``Task``. It is not a durable task, which is a ``TaskRecord``."""


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation that has boards: how many, and how many cards they have.

    >>> ConversationSummary("c1", boards=1, cards=3, open_cards=2).open_cards
    2
    """

    id: str
    boards: int
    cards: int
    open_cards: int
    """How many of the cards are not in a terminal state."""


@dataclass(frozen=True, slots=True)
class TaskList:
    """One agent's board within a conversation.

    >>> TaskList("b1", "c1", [Task("t1", "write the report")]).max_retries
    3
    """

    id: str
    conversation_id: str
    tasks: list[Task]
    max_retries: int = 3
    agent_id: str = ""
    agent_label: str = ""
    parent_agent_id: str | None = None
