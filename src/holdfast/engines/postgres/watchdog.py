"""One timer for all statements of an engine; the driver's own, one a statement, costs more."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg


class Watchdog:
    """Cuts the connections of statements that have had no answer for too long.

    The server ends a long statement itself; this is for when the server, or the way to it, is gone
    without a word. ::

        watchdog = Watchdog(60)
    """

    def __init__(self, limit_seconds: float) -> None:
        self._limit = limit_seconds
        self._sent: dict[Any, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def sent(self, connection: Any) -> None:
        """A statement is on its way."""
        loop = asyncio.get_running_loop()
        self._sent[connection] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._limit / 4, self._look)

    def answered(self, connection: Any) -> None:
        """It came back, or failed."""
        del self._sent[connection]

    @property
    def waits(self) -> bool:
        """Whether any statement is on its way."""
        return bool(self._sent)

    def close(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for connection, since in list(self._sent.items()):
            if loop.time() - since > self._limit:
                # Lost in this moment: the pool has taken it back, and who waits is being told.
                with suppress(asyncpg.InterfaceError):
                    connection.terminate()
        self._timer = loop.call_later(self._limit / 4, self._look) if self._sent else None
