"""A lease in a worker's hands: what its heartbeats said, and why its handler was stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from holdfast.values.tasks.records import Lease


class Stop(StrEnum):
    """Why a handler was stopped from outside."""

    CANCEL = "cancel"
    """A client wants the task stopped."""

    LOST = "lost"
    """The lease is somebody else's, or may be."""

    DRAIN = "drain"
    """The worker stops."""

    ISOLATION = "isolation"
    """Another task is to run alone."""

    TIMEOUT = "timeout"
    """The handler took longer than it may."""


class RunningTask:
    """One claimed task at work; the lease keeper, which may be another thread, updates it."""

    def __init__(
        self, tenant: str, lease: Lease, *, claimed_at: float, lease_seconds: float
    ) -> None:
        self.tenant = tenant
        self.lease = lease
        self.lease_seconds = lease_seconds
        self.claimed_at = claimed_at
        """When the claim was sent, by this machine's steady clock."""

        self.safe_until = claimed_at + lease_seconds
        """Until when, by this machine's steady clock, nobody else can have taken the task."""

        self.beats_until: float | None = None
        """After this the lease keeper lets the lease run out: the handler has had its time."""

        self.stopped: Stop | None = None
        self.is_leaving = False
        self._loop = asyncio.get_running_loop()
        self._work: asyncio.Future[object] | None = None

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """While a report is on its way that ends the lease: then a heartbeat may find it gone.

        The report itself fails if somebody else has taken the task.
        """
        self.is_leaving = True
        try:
            yield
        except BaseException:
            self.is_leaving = False
            raise

    def begin(self, work: asyncio.Future[object]) -> None:
        """The handler's own asyncio task, which a stop cancels."""
        self._work = work
        if self.stopped is not None:
            work.cancel()

    def beat(self, lease: Lease, *, sent_at: float, lease_seconds: float) -> None:
        """A heartbeat was accepted."""
        self.lease = lease
        self.safe_until = sent_at + lease_seconds
        if lease.cancel_requested:
            self.stop(Stop.CANCEL)

    def stop(self, why: Stop) -> None:
        """Cancel the handler, once, from whatever thread; the first reason counts."""
        if self.stopped is None:
            self.stopped = why
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._work is not None and not self._work.done():
            self._work.cancel()

    @property
    def unsafe(self) -> bool:
        """Whether the lease may have been taken since the last heartbeat that was accepted."""
        return time.monotonic() >= self.safe_until
