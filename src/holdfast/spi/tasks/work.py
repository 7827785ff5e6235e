"""Which tenants have work, as an engine finds it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator
from typing import Literal, Protocol, TypeAlias

WorkKind: TypeAlias = Literal["due", "working", "deliveries", "uncopied", "cleanup"]
"""Tasks to claim, running tasks, events to deliver, messages to copy, due cleanup marks."""


class WorkStorage(Protocol):
    """The queues of all tenants. Every argument is checked."""

    @abstractmethod
    async def tenants(self, kind: WorkKind, limit: int) -> list[str]:
        """Return tenants that have work of a kind, in order."""

    @abstractmethod
    async def wait(self, timeout_seconds: float) -> None:
        """Return when a task may have become due, or after the time."""

    @abstractmethod
    def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield at the start, and when a client may have made a request to a task of the worker."""
