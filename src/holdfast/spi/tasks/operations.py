"""What operators do with many tasks, as an engine stores it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from holdfast.spi.tasks.clients import TaskFilter
from holdfast.values.tasks.operations import ManyTasks, TaskCounts, WorkerRecord

CountBy: TypeAlias = Literal["state", "agent"]
ManyRequest: TypeAlias = Literal["cancel", "pause", "retry"]

RETRY_KEY = "holdfast.retry/"
"""Prefix of the submit keys of bulk retries; the old task's id follows: each is retried once."""


class ManyQuery(NamedTuple):
    """An operation on the tasks that match, in the order of their ids.

    Tasks that it does not apply to are skipped. Cancel and pause apply to tasks that have not
    ended. Retry applies to tasks that have ended and were not retried before. An adopted task,
    which another system runs, can only be canceled.
    """

    what: ManyRequest
    wanted: TaskFilter
    limit: int
    note: str
    dry_run: bool
    new_ids: Sequence[tuple[str, str]]
    """For a retry: an id for each new task and for its message."""
    by: str = ""


class OperationStorage(Protocol):
    """The tasks of one tenant, for their operators. The caller checks all arguments."""

    @abstractmethod
    async def counts(self, by: CountBy, wanted: TaskFilter, limit: int) -> TaskCounts:
        """Count up to ``limit`` tasks that match."""

    @abstractmethod
    async def versions(self, owner: str | None, limit: int) -> dict[str, int]:
        """Return the versions of tasks by id, of one owner or of all; the last changed first."""

    @abstractmethod
    async def workers(self, owner: str | None) -> list[WorkerRecord]:
        """Return the workers that run tasks of one owner, or of all owners, ordered by name."""

    @abstractmethod
    async def many(self, query: ManyQuery) -> ManyTasks:
        """Apply an operation, in one step; a dry run only returns the tasks."""
