"""The contexts of tasks and the messages that are to be copied, as an engine stores them."""

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
    """A context as it was read; its record has no messages of its own."""

    context: ContextRecord
    messages: Sequence[MessageRow]
    truncated: bool


class SaidMessage(NamedTuple):
    """A message, and the task that it was said in."""

    task_id: str
    agent: AgentId
    owner: str
    session_id: str
    version: int
    message: StoredMessage


class ContextStorage(Protocol):
    """The contexts of one tenant's tasks. Every argument is checked."""

    @abstractmethod
    async def list_contexts(
        self, owner: str | None, after: ContextAfter | None, limit: int, *, children: bool
    ) -> list[ContextRecord]:
        """Return contexts of an owner, or of all, by time, id and owner, descending.

        Without ``children`` tasks that other tasks submitted are not counted, and contexts that
        have no other tasks are left out.
        """

    @abstractmethod
    async def get_context(self, key: ContextKey, extent: Extent) -> ContextSnapshot | None:
        """Return a context with its last messages, which have no ``seq``, or ``None``."""

    @abstractmethod
    async def clear_context(self, key: ContextKey) -> int:
        """Delete a context, its tasks and all they hold. Returns how many tasks those were.

        All cleanup marks of the tasks are due from then on.
        """

    @abstractmethod
    async def resting_messages(self, agents: Collection[AgentId], limit: int) -> list[SaidMessage]:
        """Return all messages of tasks that are not copied and neither queued nor working.

        Those of up to ``limit`` tasks, the longest unchanged first. It may return those of fewer
        tasks, but always of one, where they are large.
        """

    @abstractmethod
    async def context_messages(
        self, key: ContextKey, agents: Collection[AgentId], last: int
    ) -> list[SaidMessage]:
        """Return those of a context's last messages whose tasks are not copied, in order."""

    @abstractmethod
    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks, given by id and version, as copied. Returns the ids of those that exist.

        One that is queued, working or of another version stays unmarked.
        """
