"""Cleanup marks of tasks, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from holdfast.spi.tasks.records import ContextKey
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.records import Lease


class CleanupStorage(Protocol):
    """The cleanup marks of one tenant's tasks. The caller checks all arguments.

    A mark names data to delete after a task. It is stored once for its task, kind and ref. Workers
    process marks that are due. All marks of a task are due when it is deleted; those of other kinds
    than ``artifact`` are due already when it ends.
    """

    @abstractmethod
    async def add_cleanup(self, lease: Lease, mark: CleanupMark) -> None:
        """Store a mark, unless it is stored. Raises ``LeaseLostError`` if the lease is lost."""

    @abstractmethod
    async def claim_cleanup(self, limit: int, retry_seconds: float) -> list[CleanupMark]:
        """Claim due marks, the longest due first; each is due again after ``retry_seconds``."""

    @abstractmethod
    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """Return the due marks of a task, claimed or not, in the order in which they became due."""

    @abstractmethod
    async def list_context_cleanup(self, key: ContextKey) -> list[CleanupMark]:
        """Return the due marks of all tasks that a context has or had, as ``list_cleanup`` does."""

    @abstractmethod
    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Store marks of the kind ``artifact``. Returns ``False`` if there is no such task."""

    @abstractmethod
    async def delete_cleanup(self, task_id: str, marks: Sequence[CleanupMark]) -> int:
        """Delete marks of one task. Returns how many there were."""
