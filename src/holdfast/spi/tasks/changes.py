"""The feed of changes of tasks, as an engine stores it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.values.tasks.changes import TaskChange


class ChangePosition(NamedTuple):
    """A place in the feed. What it means is known to the engine; they grow along the feed."""

    place: int = 0
    task_id: str = ""
    seq: int = 0


class FoundChanges(NamedTuple):
    """What was read of the feed: the changes of the owner, and the last position that was read."""

    changes: Sequence[TaskChange]
    last: ChangePosition
    read: int


class ChangeStorage(Protocol):
    """The changes of state of one tenant's tasks. Every argument is checked."""

    @abstractmethod
    async def changes(self, owner: str | None, after: ChangePosition, limit: int) -> FoundChanges:
        """Read up to ``limit`` changes after a position, and return those of an owner, or of all.

        No change is ever added before a position that was returned. Changes of deleted tasks are
        read and not returned.
        """

    @abstractmethod
    async def last_change(self) -> ChangePosition:
        """Return a position before all changes that are yet to come, and after most others."""
