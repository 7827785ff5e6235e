"""Which tenants have work, as an engine finds it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

WorkKind: TypeAlias = Literal["due", "working", "deliveries", "uncopied", "cleanup"]
"""Tasks to claim, running tasks, events to deliver, messages to copy, due cleanup marks."""


@dataclass(frozen=True, slots=True)
class WorkSurvey:
    """The tenants that have work for a worker, of all kinds, found in one query.

    >>> WorkSurvey({"due": ["acme"]}).tenants("working")
    []
    """

    found: dict[WorkKind, list[str]] = field(default_factory=dict)
    """The tenants that have work of a kind, in order."""

    next_due_seconds: float | None = None
    """Seconds until the next task becomes due; ``None`` if no task waits for a time."""

    def tenants(self, kind: WorkKind) -> list[str]:
        """Return the tenants that have work of a kind."""
        return self.found.get(kind, [])


class ScheduledWork(NamedTuple):
    """Tenants that have due schedules, and the seconds until the next schedule is due, if any.

    The seconds are 0 or less while a schedule is due.
    """

    tenants: list[str]
    wait_seconds: float | None


class WorkStorage(Protocol):
    """The queues of all tenants. The caller checks all arguments."""

    @abstractmethod
    async def tenants(self, kind: WorkKind, limit: int) -> list[str]:
        """Return tenants that have work of a kind, in order."""

    @abstractmethod
    async def survey(self, limit: int, tenants: Collection[str] | None) -> WorkSurvey:
        """Return up to ``limit`` tenants for each kind of work except deliveries, in one request.

        Only those in ``tenants``, unless it is ``None``.
        """

    @property
    @abstractmethod
    def notified(self) -> bool:
        """Whether ``notices`` yields at once when another process adds work."""

    @abstractmethod
    def notices(self) -> AsyncGenerator[None, None]:
        """Yield at the start, and when a task may have become due."""

    @abstractmethod
    async def scheduled(self, tenants: Sequence[str] | None, limit: int) -> ScheduledWork:
        """Return the tenants, of these or of all, with due schedules, and when the next is due."""

    @abstractmethod
    async def wait(self, timeout_seconds: float) -> None:
        """Wait until a task may have become due, or until ``timeout_seconds`` have passed."""

    @abstractmethod
    def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield at the start, and when a client may have made a request to a task of the worker."""
