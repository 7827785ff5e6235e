"""The timelines of tasks and the feedback on them, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.records import Extent, StoredEvent, TaskKey
from holdfast.spi.tasks.stored import StoredFeedback
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import TaskRecord


class Timeline(NamedTuple):
    """A part of a timeline, and the state and version of the task when it was read."""

    state: TaskState
    version: int
    events: Sequence[StoredEvent]


class Followed(Protocol):
    """Wakes a follower of a timeline."""

    @abstractmethod
    async def wait(self, *, found: bool) -> None:
        """Return when the timeline may have grown; ``found`` says whether the last read had events.

        If something happens between two waits, the second one returns at once.
        """


class AuditStorage(Protocol):
    """The timelines of one tenant's tasks. The caller checks all arguments."""

    @abstractmethod
    async def events(
        self, key: TaskKey, after: int, limit: int | None, max_bytes: int | None
    ) -> list[StoredEvent]:
        """Return events after the cursor, in order: as many as fit, but always the first."""

    @abstractmethod
    async def next_events(self, key: TaskKey, after: int) -> Timeline | None:
        """Return some of the events after the cursor; ``None`` if there is no such task."""

    @abstractmethod
    def following(self, task_id: str) -> AbstractContextManager[Followed]:
        """Return a context in which a follower is woken by events of a task."""

    @abstractmethod
    async def replay(self, key: TaskKey, until: int, extent: Extent) -> TaskRecord | None:
        """Return a task as it was after the event ``until``, or after its last one.

        Returns ``None`` before the first event. ``values.tasks.replay`` has the rules. An engine
        reads only what it returns, not all earlier events. The lease's expiry stays empty.
        ``extent`` has no ``max_bytes``.
        """

    @abstractmethod
    async def append_feedback(self, key: TaskKey, feedback: StoredFeedback) -> StoredFeedback:
        """Store feedback with the engine's time, unless its id is stored. Returns the stored one.

        Raises ``ConflictError`` if the stored one has another digest, and ``NotFoundError`` if
        there is no such task.
        """

    @abstractmethod
    async def list_feedback(self, key: TaskKey) -> list[StoredFeedback]:
        """Return the feedback on a task, in the order it was stored."""
