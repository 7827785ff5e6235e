"""A claimed task in a worker: its lease, its heartbeats, and why its handler was stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from holdfast.values.identity import AgentId
from holdfast.values.tasks.records import Lease


class Stop(StrEnum):
    """Why a handler was stopped from outside."""

    CANCEL = "cancel"
    """A client asked to cancel the task."""

    LOST = "lost"
    """Another worker has the lease, or may have it."""

    DRAIN = "drain"
    """The worker is stopping."""

    ISOLATION = "isolation"
    """The worker must run another task alone."""

    TIMEOUT = "timeout"
    """The handler took longer than its ``timeout_seconds``."""


class RunningTask:
    """A claimed task that runs; the lease keeper updates it, possibly from another thread."""

    def __init__(
        self, tenant: str, lease: Lease, *, claimed_at: float, lease_seconds: float
    ) -> None:
        self.tenant = tenant
        self.lease = lease
        self.lease_seconds = lease_seconds
        self.claimed_at = claimed_at
        """When the claim was sent, by this machine's monotonic clock."""

        self.safe_until = claimed_at + lease_seconds
        """Until then, by this machine's monotonic clock, no other worker can claim the task."""

        self.beats_until: float | None = None
        """When heartbeats stop, so that the lease expires: the handler's timeout is over."""

        self.stopped: Stop | None = None
        self.is_leaving = False
        self.child_agents: set[AgentId] = set()
        """The agents of the children that this run submitted."""

        self._loop = asyncio.get_running_loop()
        self._work: asyncio.Future[object] | None = None

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Use around a request that ends the lease: a heartbeat that finds it lost is then ignored.

        The request itself fails if another worker has claimed the task.
        """
        self.is_leaving = True
        try:
            yield
        except BaseException:
            self.is_leaving = False
            raise

    def begin(self, work: asyncio.Future[object]) -> None:
        """Set the handler's asyncio task, which ``stop`` cancels."""
        self._work = work
        if self.stopped is not None:
            work.cancel()

    def beat(self, lease: Lease, *, sent_at: float, lease_seconds: float) -> None:
        """Record an accepted heartbeat; stop the handler if a client asked to cancel."""
        self.lease = lease
        self.safe_until = sent_at + lease_seconds
        if lease.cancel_requested:
            self.stop(Stop.CANCEL)

    def stop(self, why: Stop) -> None:
        """Cancel the handler once, from any thread; the first reason is kept."""
        if self.stopped is None:
            self.stopped = why
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._work is not None and not self._work.done():
            self._work.cancel()

    @property
    def unsafe(self) -> bool:
        """Whether the lease may have expired since the last accepted heartbeat."""
        return time.monotonic() >= self.safe_until
