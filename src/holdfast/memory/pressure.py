"""When too much waits to be flushed: measured about once a second, whoever appends."""

from __future__ import annotations

import time
from dataclasses import dataclass

from holdfast.kernel.core.errors import BackPressureError
from holdfast.kernel.storage.hot_log import HotQueue


@dataclass(frozen=True, slots=True)
class PressureMarks:
    """How old the oldest waiting event and how full the memory may be.

    Soft: writers wait for the flush. Hard: nothing is taken.

    >>> PressureMarks().hard_age_seconds
    3600
    """

    soft_age_seconds: float = 300
    hard_age_seconds: float = 3600
    soft_memory: float = 0.6
    hard_memory: float = 0.8


class Pressure:
    """Looks at the hot log for all who append.

    ::

        pressure = Pressure(queue)
        crowded = await pressure.check()
    """

    def __init__(
        self, queue: HotQueue, marks: PressureMarks | None = None, *, every_seconds: float = 1.0
    ) -> None:
        self._queue = queue
        self._marks = marks or PressureMarks()
        self._every = every_seconds
        self._next = 0.0
        self._crowded = False
        self._full = ""

    @property
    def calm(self) -> bool:
        """Whether no mark was passed when it was last looked at, a moment ago."""
        return not (self._crowded or self._full or time.monotonic() >= self._next)

    async def check(self) -> bool:
        """Whether a soft mark is passed; ``BackPressureError`` at a hard one."""
        if time.monotonic() >= self._next:
            # Whoever comes meanwhile goes by what was seen last.
            self._next = time.monotonic() + self._every
            await self._look()
        if self._full:
            raise BackPressureError(retry_after_seconds=self._every, message=self._full)
        return self._crowded

    async def _look(self) -> None:
        stats, marks = await self._queue.stats(), self._marks
        self._full = ""
        if stats.oldest_seconds >= marks.hard_age_seconds:
            self._full = (
                f"the oldest event waits for {stats.oldest_seconds:.0f} s: see why "
                "`holdfast consolidate` does not get on, then try again"
            )
        elif stats.memory_ratio >= marks.hard_memory:
            self._full = (
                f"Redis has used {stats.memory_ratio:.0%} of its maxmemory: raise it, or wait "
                "until more is flushed"
            )
        self._crowded = (
            stats.oldest_seconds >= marks.soft_age_seconds
            or stats.memory_ratio >= marks.soft_memory
        )
