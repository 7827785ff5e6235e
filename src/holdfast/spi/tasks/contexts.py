"""Contexts of tasks, and messages to copy to session logs, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.records import ContextKey, Extent, MessageRow
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.identity import AgentId
from holdfast.values.tasks.records import ContextRecord


class ContextAfter(NamedTuple):
    """The context that a page of contexts comes after."""

    created_at: datetime
    session_id: str
    owner: str


class ContextSnapshot(NamedTuple):
    """A context as it was read; ``messages`` has its messages, the record has none."""

    context: ContextRecord
    messages: Sequence[MessageRow]
    truncated: bool


class SaidMessage(NamedTuple):
    """A message, and the task that it belongs to."""

    task_id: str
    agent: AgentId
    owner: str
    session_id: str
    version: int
    message: StoredMessage


class ContextStorage(Protocol):
    """The contexts of one tenant's tasks. The caller checks all arguments."""

    @abstractmethod
    async def list_contexts(
        self, owner: str | None, after: ContextAfter | None, limit: int, *, children: bool
    ) -> list[ContextRecord]:
        """Return contexts of one owner, or of all, ordered by time, id and owner, descending.

        Without ``children`` tasks that other tasks submitted are not counted, and contexts that
        have no other tasks are left out.
        """

    @abstractmethod
    async def get_context(self, key: ContextKey, extent: Extent) -> ContextSnapshot | None:
        """Return a context with its last messages, which have no ``seq``, or ``None``."""

    @abstractmethod
    async def clear_context(self, key: ContextKey) -> int:
        """Delete a context, its tasks and all their data. Returns how many tasks were deleted.

        All cleanup marks of the tasks are due from then on.
        """

    @abstractmethod
    async def resting_messages(self, agents: Collection[AgentId], limit: int) -> list[SaidMessage]:
        """Return all messages of tasks that are neither copied to session logs, queued nor working.

        Returns messages of up to ``limit`` tasks, the longest unchanged first. If messages are
        large, it may return those of fewer tasks, but of at least one.
        """

    @abstractmethod
    async def context_messages(
        self, keys: Sequence[ContextKey], agents: Collection[AgentId], last: int
    ) -> list[SaidMessage]:
        """Return those of the last messages of contexts whose tasks are not marked as copied.

        The messages of a context are in the order they were stored. ``last`` counts those of one
        context.
        """

    @abstractmethod
    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks, given by id and version, as copied. Returns the ids of those that exist.

        A task that is queued, working or has another version is not marked.
        """
