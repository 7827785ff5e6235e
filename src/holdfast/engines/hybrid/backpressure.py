"""Backpressure: appends slow down, then fail, while the consolidators have too large a backlog."""

from __future__ import annotations

import time
from dataclasses import dataclass

from holdfast.spi.hybrid.hot_log import HotQueue, HotStats
from holdfast.values.errors import BackPressureError


@dataclass(frozen=True, slots=True)
class BackpressureLimits:
    """Limits on the age of the oldest unflushed event and on the memory that Redis uses.

    Above a soft limit an append waits until its events are flushed. Above a hard limit it fails
    with ``BackPressureError``. ``soft_memory`` and ``hard_memory`` apply to the tenants whose
    unflushed events take at least an average share. The other tenants may append up to
    ``last_memory``, so that one tenant cannot block another.

    >>> BackpressureLimits().hard_age_seconds
    3600
    """

    soft_age_seconds: float = 300
    hard_age_seconds: float = 3600
    soft_memory: float = 0.6
    hard_memory: float = 0.8
    last_memory: float = 0.9


class Backpressure:
    """Measures the backlog of the hot log, about once a second, for all appends of a process.

    ::

        backpressure = Backpressure(queue)
        crowded = await backpressure.check("acme")
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
        self._stats = HotStats(0, 0.0)
        self._crowded = False

    @property
    def calm(self) -> bool:
        """Whether the last measurement is recent and was within all limits."""
        return not self._crowded and time.monotonic() < self._next

    async def check(self, tenant: str) -> bool:
        """Return whether a soft limit is exceeded for this tenant.

        Raises ``BackPressureError`` if a hard limit is.
        """
        if time.monotonic() >= self._next:
            # Calls that come while this one measures use the previous measurement.
            self._next = time.monotonic() + self._every
            self._stats = await self._queue.stats()
            self._crowded = (
                self._stats.oldest_seconds >= self._limits.soft_age_seconds
                or self._stats.memory_ratio >= self._limits.soft_memory
            )
        if not self._crowded:
            return False
        if full := self._full(tenant):
            raise BackPressureError(retry_after_seconds=self._every, message=full)
        return self._stats.oldest_seconds >= self._limits.soft_age_seconds or self._is_large(tenant)

    def _full(self, tenant: str) -> str:
        """Return why a tenant may not append, or ``""`` if it may."""
        stats, limits = self._stats, self._limits
        if stats.oldest_seconds >= limits.hard_age_seconds:
            return (
                f"the oldest unflushed event is {stats.oldest_seconds:.0f} s old: check that "
                "`holdfast consolidate` is running and has no errors, then try again"
            )
        most = limits.hard_memory if self._is_large(tenant) else limits.last_memory
        if stats.memory_ratio >= most:
            return (
                f"Redis uses {stats.memory_ratio:.0%} of its maxmemory: raise maxmemory, or try "
                "again when more is flushed"
            )
        return ""

    def _is_large(self, tenant: str) -> bool:
        """Return whether the unflushed events of a tenant take at least an average share."""
        waiting = self._stats.bytes_by_tenant
        return waiting.get(tenant, 0) * len(waiting) >= sum(waiting.values())
