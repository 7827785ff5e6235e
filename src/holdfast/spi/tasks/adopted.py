"""Tasks that somebody else runs, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeAlias

from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TaskState


class StoredStatus(NamedTuple):
    """A reported status; ``metadata`` of ``None`` leaves that of the task as it is."""

    state: TaskState
    message: StoredMessage | None = None
    note: str = ""
    at: datetime | None = None
    metadata: str | None = None


StoredReport: TypeAlias = StoredStatus | StoredMessage | StoredChunk


class Adoption(NamedTuple):
    """A task that was checked and is not yet stored."""

    task_id: str
    agent: AgentId
    owner: str
    session_id: str
    metadata: str
    reports: Sequence[StoredReport]


class AdoptedStorage(Protocol):
    """The tasks of one tenant that somebody else runs. Every argument is checked.

    Each method is one atomic step. No worker claims or recovers such a task, no lease on it is
    good, and its messages are not copied to session logs; its ``max_attempts`` is 0. Reports are
    stored in order, and a change of state needs no edge of the lifecycle. A message that the task
    has is not stored again; with another body it is a ``ConflictError``.
    """

    @abstractmethod
    async def adopt(self, adoption: Adoption) -> TaskSnapshot:
        """Store a task as ``submitted``, then its reports. ``AlreadyExistsError`` if it exists."""

    @abstractmethod
    async def record(
        self, key: TaskKey, reports: Sequence[StoredReport], expected_version: int | None
    ) -> int:
        """Store reports if the task has the expected version. Returns the new one.

        ``VersionConflictError`` if it has another; ``None`` means any. In this order:
        ``NotFoundError`` without the task, ``ConflictError`` (``conflicts.not_adopted``) if workers
        run it, ``VersionConflictError``, and ``IllegalTransitionError`` if it has ended, before or
        by a report that is not the last.
        """

    @abstractmethod
    async def delete_task(self, key: TaskKey) -> bool:
        """Delete a task, adopted or not, with all it holds. Returns whether it was there.

        Its cleanup marks become due, and its followers are woken. The last task of a context takes
        the context with it.
        """
