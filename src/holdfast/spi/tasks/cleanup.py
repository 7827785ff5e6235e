"""Cleanup marks of tasks, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from holdfast.spi.tasks.records import ContextKey
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.records import Lease


class CleanupStorage(Protocol):
    """The cleanup marks of one tenant's tasks. Every argument is checked.

    A mark is stored once for its task, kind and ref. The marks of a task are due when it ends,
    except those of the kind ``artifact``, and all of them when it is deleted.
    """

    @abstractmethod
    async def add_cleanup(self, lease: Lease, mark: CleanupMark) -> None:
        """Store a mark, unless it is there. Raises ``LeaseLostError``."""

    @abstractmethod
    async def claim_cleanup(self, limit: int, retry_seconds: float) -> list[CleanupMark]:
        """Take due marks, the longest due first; each is due again after ``retry_seconds``."""

    @abstractmethod
    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """Return the marks of a task that are or were due, claimed or not, in that order."""

    @abstractmethod
    async def list_context_cleanup(self, key: ContextKey) -> list[CleanupMark]:
        """Return the same of all tasks that a context has or had."""

    @abstractmethod
    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Store marks of the kind ``artifact``. Returns ``False`` if there is no such task."""

    @abstractmethod
    async def delete_cleanup(self, task_id: str, marks: Sequence[CleanupMark]) -> int:
        """Delete marks of one task. Returns how many there were."""
