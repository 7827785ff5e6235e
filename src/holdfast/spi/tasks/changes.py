"""The feed of changes of tasks, as an engine stores it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.values.tasks.changes import TaskChange


class ChangePosition(NamedTuple):
    """A position in the feed. Only the engine knows its meaning; later positions are greater."""

    place: int = 0
    task_id: str = ""
    seq: int = 0


class FoundChanges(NamedTuple):
    """A part of the feed: the changes of the owner, and the last position that was read."""

    changes: Sequence[TaskChange]
    last: ChangePosition
    read: int


class ChangeStorage(Protocol):
    """The changes of state of one tenant's tasks. The caller checks all arguments."""

    @abstractmethod
    async def changes(self, owner: str | None, after: ChangePosition, limit: int) -> FoundChanges:
        """Read up to ``limit`` changes after a position. Returns those of one owner, or of all.

        No change is ever added before a position that was returned. Changes of deleted tasks
        count as read, and are not returned.
        """

    @abstractmethod
    async def last_change(self) -> ChangePosition:
        """Return a position before all future changes, and after most past ones."""
