"""Sends heartbeats from a thread of their own: a handler that blocks its loop keeps its lease."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from typing import Self

from holdfast.runtime.background import BackgroundJob
from holdfast.runtime.running_task import RunningTask, Stop
from holdfast.runtime.stores import TaskStores
from holdfast.values.errors import HoldfastError, LeaseLostError

_log = logging.getLogger("holdfast.worker")


class LeaseKeeper:
    """Extends each lease every third of ``lease_seconds``, and stops handlers that lost theirs.

    When a client asks to cancel or pause a task, the worker is notified and the keeper sends its
    heartbeats at once.

    A worker that cannot reach the ledger fences itself: it stops a handler before another worker
    can have claimed its task. ::

        async with LeaseKeeper(state, "worker-1", lease_seconds=30) as keeper:
            keeper.watch(held)
    """

    def __init__(self, stores: TaskStores, worker: str, *, lease_seconds: float) -> None:
        self._stores = stores
        self._worker = worker
        self._lease_seconds = lease_seconds
        self._interval = lease_seconds / 3
        self._watched: dict[int, RunningTask] = {}
        self._stopping = False
        self._wake = threading.Event()
        self._wake_here = asyncio.Event()
        self._hurried_at = float("-inf")
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        self._notices: BackgroundJob | None = None

    async def __aenter__(self) -> Self:
        if self._stores.ops.elsewhere() is None:
            self._task = asyncio.create_task(self._beat_here())
        else:
            self._thread = threading.Thread(target=self._run, name="holdfast-leases", daemon=True)
            self._thread.start()
        self._notices = BackgroundJob("requests of clients", self._listen, pause_seconds=0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        self._wake.set()
        if self._notices is not None:
            await self._notices.aclose()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, self._lease_seconds)

    def watch(self, held: RunningTask) -> None:
        """Start to extend a lease."""
        self._watched[id(held)] = held
        if held.claimed_at <= self._hurried_at:
            # A notice that arrived before the response to the claim may be about this task.
            self._hurry()

    async def _listen(self) -> None:
        async with contextlib.aclosing(self._stores.ops.work.requests(self._worker)) as requests:
            async for _ in requests:
                self._hurry()

    def _hurry(self) -> None:
        """Send the heartbeats of all leases now."""
        self._hurried_at = time.monotonic()
        if self._watched:
            self._wake.set()
            self._wake_here.set()

    def forget(self, held: RunningTask) -> None:
        """Stop extending a lease: its run has ended."""
        self._watched.pop(id(held), None)

    async def _beat_here(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._wake_here.wait()
            self._wake_here.clear()
            await self._beat_all(self._stores)

    def _run(self) -> None:
        while not self._stopping:
            try:
                asyncio.run(self._beat_elsewhere())
            except Exception as error:  # noqa: BLE001 - no error may stop the heartbeats
                # The ledger cannot be reached: retry, and stop the handlers whose lease expires.
                expected = isinstance(error, HoldfastError)
                _log.warning("no heartbeat: %s", error, exc_info=not expected)
                self._fence_off()
                self._wait(min(1.0, self._interval))

    async def _beat_elsewhere(self) -> None:
        opening = self._stores.ops.elsewhere()
        if opening is None:
            raise RuntimeError("the state can no longer open separate connections")
        async with opening as stores:
            while not self._stopping:
                begun = time.monotonic()
                await self._beat_all(stores)
                left = begun + self._interval - time.monotonic()
                # In a thread: the event is set from another event loop.
                await asyncio.to_thread(self._wait, max(left, 0.01))

    def _wait(self, seconds: float) -> None:
        self._wake.wait(seconds)
        if not self._stopping:
            self._wake.clear()

    async def _beat_all(self, stores: TaskStores) -> None:
        for held in list(self._watched.values()):
            await self._beat(stores, held)

    async def _beat(self, stores: TaskStores, held: RunningTask) -> None:
        sent_at = time.monotonic()
        if held.stopped is Stop.LOST or (held.beats_until or sent_at) < sent_at:
            return
        try:
            async with asyncio.timeout(self._interval):
                lease = await stores.for_tenant(held.tenant).tasks.heartbeat(
                    held.lease, lease_seconds=self._lease_seconds
                )
        except LeaseLostError:
            if id(held) in self._watched and not held.is_leaving:
                held.stop(Stop.LOST)
        except Exception as error:  # noqa: BLE001 - no error may stop the heartbeats of others
            expected = isinstance(error, (HoldfastError, TimeoutError))
            _log.warning(
                "a heartbeat of task %s failed: %s",
                *(held.lease.task_id, error),
                exc_info=not expected,
            )
            self._fence_off()
        else:
            held.beat(lease, sent_at=sent_at, lease_seconds=self._lease_seconds)

    def _fence_off(self) -> None:
        """Stop the handlers whose lease may expire before the next heartbeat."""
        soon = time.monotonic() + self._interval / 2
        for held in list(self._watched.values()):
            if held.safe_until <= soon:
                with contextlib.suppress(RuntimeError):
                    # The worker's loop may be closed by now, and its handlers with it.
                    held.stop(Stop.LOST)
