"""Backpressure: appends slow down, then fail, while the consolidators have too large a backlog."""

from __future__ import annotations

import time
from dataclasses import dataclass

from holdfast.spi.hybrid.hot_log import HotQueue
from holdfast.values.errors import BackPressureError


@dataclass(frozen=True, slots=True)
class BackpressureLimits:
    """Limits on the age of the oldest unflushed event and on the memory that Redis uses.

    Beyond a soft limit an append waits until it is flushed. Beyond a hard limit it is refused.

    >>> BackpressureLimits().hard_age_seconds
    3600
    """

    soft_age_seconds: float = 300
    hard_age_seconds: float = 3600
    soft_memory: float = 0.6
    hard_memory: float = 0.8


class Backpressure:
    """Measures the backlog of the hot log, about once a second, for all appends of a process.

    ::

        backpressure = Backpressure(queue)
        crowded = await backpressure.check()
    """

    def __init__(
        self,
        queue: HotQueue,
        limits: BackpressureLimits | None = None,
        *,
        every_seconds: float = 1.0,
    ) -> None:
        self._queue = queue
        self._limits = limits or BackpressureLimits()
        self._every = every_seconds
        self._next = 0.0
        self._crowded = False
        self._full = ""

    @property
    def calm(self) -> bool:
        """Whether the last measurement is recent and was within all limits."""
        return not (self._crowded or self._full or time.monotonic() >= self._next)

    async def check(self) -> bool:
        """Return whether a soft limit is exceeded.

        Raises ``BackPressureError`` if a hard limit is.
        """
        if time.monotonic() >= self._next:
            # Calls that come while this one measures use the previous measurement.
            self._next = time.monotonic() + self._every
            await self._look()
        if self._full:
            raise BackPressureError(retry_after_seconds=self._every, message=self._full)
        return self._crowded

    async def _look(self) -> None:
        stats, limits = await self._queue.stats(), self._limits
        self._full = ""
        if stats.oldest_seconds >= limits.hard_age_seconds:
            self._full = (
                f"the oldest unflushed event is {stats.oldest_seconds:.0f} s old: check that "
                "`holdfast consolidate` is running and has no errors, then try again"
            )
        elif stats.memory_ratio >= limits.hard_memory:
            self._full = (
                f"Redis uses {stats.memory_ratio:.0%} of its maxmemory: raise maxmemory, or try "
                "again when more is flushed"
            )
        self._crowded = (
            stats.oldest_seconds >= limits.soft_age_seconds
            or stats.memory_ratio >= limits.soft_memory
        )
