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
    """All that a worker looks for, found at once.

    >>> WorkSurvey({"due": ["acme"]}).tenants("working")
    []
    """

    found: dict[WorkKind, list[str]] = field(default_factory=dict)
    """The tenants that have work of a kind, in order."""

    next_due_seconds: float | None = None
    """When the next task becomes due that is not due yet; ``None`` if there is none."""

    def tenants(self, kind: WorkKind) -> list[str]:
        """Return the tenants that have work of a kind."""
        return self.found.get(kind, [])


class ScheduledWork(NamedTuple):
    """Tenants that have due schedules, and the seconds until the next one is due, if any will be.

    At most 0 while one is due.
    """

    tenants: list[str]
    wait_seconds: float | None


class WorkStorage(Protocol):
    """The queues of all tenants. Every argument is checked."""

    @abstractmethod
    async def tenants(self, kind: WorkKind, limit: int) -> list[str]:
        """Return tenants that have work of a kind, in order."""

    @abstractmethod
    async def survey(self, limit: int, tenants: Collection[str] | None) -> WorkSurvey:
        """Return up to ``limit`` tenants of each kind but deliveries, in one request.

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
        """Return those of the tenants, or of all, that have due schedules, and when one is next."""

    @abstractmethod
    async def wait(self, timeout_seconds: float) -> None:
        """Return when a task may have become due, or after the time."""

    @abstractmethod
    def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield at the start, and when a client may have made a request to a task of the worker."""
