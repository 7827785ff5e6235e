"""The feed of changes of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import Actor, TaskState


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A change of a task's state.

    >>> now = datetime(2030, 1, 1)
    >>> change = TaskChange(
    ...     "t1", 1, None, TaskState.SUBMITTED, now, Actor.CLIENT, AgentId("", "writer"), "c1"
    ... )
    >>> change.to_state.value
    'submitted'
    """

    task_id: str
    seq: int
    """Its number in the task's timeline: of two changes of a task, the higher is the later."""

    from_state: TaskState | None
    to_state: TaskState
    at: datetime
    by: Actor
    agent: AgentId
    session_id: str
    owner: str = ""
    by_name: str = ""
    """Who did it, as the caller of a request named them; empty if nobody was named."""


@dataclass(frozen=True, slots=True)
class TaskChanges:
    """A page of the feed of changes.

    >>> TaskChanges([], "abc").cursor
    'abc'
    """

    changes: list[TaskChange]
    cursor: str
    """Where the next page begins."""

    more: bool = False
    """Whether the next page may have changes already. It can be true even if this page is empty."""
