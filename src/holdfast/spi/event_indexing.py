"""The queue of events that are not in the word index yet: an append does not wait for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol


class EventIndexer(Protocol):
    """Adds the waiting events of all tenants to the word index; any number may run at once."""

    @abstractmethod
    async def waiting(self) -> int:
        """Return an upper bound of how many events wait.

        ::

            print(await indexer.waiting())
        """

    @abstractmethod
    async def drain(self, progress: Callable[[int], None] | None = None) -> int:
        """Index until no event waits. Returns how many were indexed.

        ``progress`` is called with the count of each batch. ::

            await indexer.drain()
        """
