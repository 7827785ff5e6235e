"""How much work of all tenants waits, as an engine counts it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from holdfast.values.backlog import Backlog


class BacklogStorage(Protocol):
    """The queues of all tenants, counted. Every argument is checked."""

    @abstractmethod
    async def backlog(self, agents: Sequence[str], limit: int) -> Backlog:
        """Count what waits, up to ``limit`` tasks of each state, in one request.

        It reads no task that has ended. Agents that are not in ``agents`` count as ``other``. ::

            found = await storage.backlog(["writer"], 10_000)
        """
