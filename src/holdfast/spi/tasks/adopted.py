"""Adopted tasks, which another system runs, as an engine stores them."""

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
    """A reported status; with ``metadata=None`` the task keeps its metadata."""

    state: TaskState
    message: StoredMessage | None = None
    note: str = ""
    at: datetime | None = None
    metadata: str | None = None


StoredReport: TypeAlias = StoredStatus | StoredMessage | StoredChunk


class Adoption(NamedTuple):
    """A checked task of another system, which is not yet stored."""

    task_id: str
    agent: AgentId
    owner: str
    session_id: str
    metadata: str
    reports: Sequence[StoredReport]


class AdoptedStorage(Protocol):
    """The adopted tasks of one tenant, which another system runs. The caller checks all arguments.

    Each method is one atomic step. No worker claims or recovers an adopted task, no lease on it is
    valid, and its messages are not copied to session logs; its ``max_attempts`` is 0. Reports are
    stored in order, and may change the state in ways that the lifecycle does not allow otherwise. A
    message that the task has is not stored again; with another body it raises ``ConflictError``.
    """

    @abstractmethod
    async def adopt(self, adoption: Adoption) -> TaskSnapshot:
        """Store a task as ``submitted``, then its reports. Raises ``AlreadyExistsError``."""

    @abstractmethod
    async def record(
        self, key: TaskKey, reports: Sequence[StoredReport], expected_version: int | None
    ) -> int:
        """Store reports if the task has the expected version. Returns the new version.

        ``expected_version=None`` accepts any version. Raises, in this order: ``NotFoundError`` if
        there is no such task; ``ConflictError`` (``conflicts.not_adopted``) if workers run it;
        ``VersionConflictError`` if it has another version; ``IllegalTransitionError`` if it has
        ended before, or if a report that is not the last one ends it.
        """

    @abstractmethod
    async def delete_task(self, key: TaskKey) -> bool:
        """Delete a task, adopted or not, with all it holds. Returns whether it was there.

        Its cleanup marks become due, and its followers are woken. A context is deleted with its
        last task.
        """
