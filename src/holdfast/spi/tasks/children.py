"""Tasks that other tasks submit, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from holdfast.spi.tasks.clients import TaskListing
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.tasks.records import Lease


class ChildStorage(Protocol):
    """The children of one tenant's tasks. The caller checks all arguments."""

    @abstractmethod
    async def submit_child(self, lease: Lease, step: StepDraft, draft: Draft) -> TaskSnapshot:
        """Store a task as a child of the one under the lease, and the step that names it.

        Both are stored in one atomic step. The child has its parent's owner. If the step is already
        stored, the child that it names is returned. Raises ``ConflictError`` if the stored step has
        another digest or a client asked to cancel the parent, and ``NotFoundError`` if the child
        was deleted.
        """

    @abstractmethod
    async def children(self, key: TaskKey, after: str, limit: int) -> TaskListing:
        """Return the children of a task with an id above ``after``, by id, without messages."""

    @abstractmethod
    async def cancel_tree(self, key: TaskKey, note: str, by: str = "") -> TaskSnapshot:
        """Cancel a task and all its descendants, as ``request`` does. Returns the task."""
