"""One timer for all calls of an engine; a timer per call would cost as much as the call."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Calls ``late`` once for each call that has not ended within ``limit_seconds``.

    The timer checks every quarter of the limit, so ``late`` runs at most a quarter of the limit
    after it. ::

        deadlines = Deadlines(60, lambda connection: connection.terminate())
        deadlines.start(connection)
        try:
            await connection.fetch(sql)
        finally:
            deadlines.end(connection)
    """

    def __init__(self, limit_seconds: float, late: Callable[[K], None]) -> None:
        self.limit_seconds = limit_seconds
        self._late = late
        self._started: dict[K, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self, key: K) -> None:
        """Start the deadline of a call; each key has one call at a time."""
        loop = asyncio.get_running_loop()
        self._started[key] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self.limit_seconds / 4, self._look)

    def end(self, key: K) -> None:
        """Remove the deadline of a call that has returned or failed."""
        del self._started[key]

    @property
    def waiting(self) -> bool:
        """Whether any call has not ended."""
        return bool(self._started)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for key, started in list(self._started.items()):
            if loop.time() - started >= self.limit_seconds:
                self._started[key] = math.inf
                self._late(key)
        again = self.limit_seconds / 4
        self._timer = loop.call_later(again, self._look) if self._started else None
