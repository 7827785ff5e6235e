"""How much work of all tenants waits, as an engine counts it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from holdfast.values.backlog import Backlog


class BacklogStorage(Protocol):
    """Counts the queues of all tenants. The caller checks all arguments."""

    @abstractmethod
    async def backlog(self, agents: Sequence[str], limit: int) -> Backlog:
        """Count the waiting work, up to ``limit`` tasks of each state, in one request.

        It reads no task that has ended. Tasks of agents not in ``agents`` count as ``other``. ::

            found = await storage.backlog(["writer"], 10_000)
        """
