"""Finds the tenants that have work and wakes workers, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import suppress

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.schedules import ScheduleData
from holdfast.engines.inmemory.tasks.data import Doorbell, LedgerData
from holdfast.spi.tasks.work import ScheduledWork, WorkKind, WorkStorage, WorkSurvey
from holdfast.values.lifecycle import TaskState


class InMemoryWork(WorkStorage):
    """Finds the tenants that have work, and wakes workers of this process.

    >>> work = InMemoryWork(InMemory())
    """

    def __init__(self, engine: InMemory) -> None:
        self._engine = engine

    async def tenants(self, kind: WorkKind, limit: int) -> list[str]:
        """Return tenants that have work of a kind, in order."""
        found = [
            tenant
            for tenant, data in self._engine.by_tenant(LedgerData).items()
            if self._has(kind, data)
        ]
        return sorted(found)[:limit]

    def _has(self, kind: WorkKind, data: LedgerData) -> bool:
        now = self._engine.now()
        match kind:
            case "due":
                return bool(data.queue) and data.queue[0][0] <= now
            case "working":
                return bool(data.working)
            case "deliveries":
                return any(
                    not one.dead and one.due_at <= now
                    for lane in data.lanes.values()
                    for one in lane.values()
                )
            case "uncopied":
                return any(
                    data.tasks[one].state not in (TaskState.SUBMITTED, TaskState.WORKING)
                    for one in data.uncopied
                )
            case "cleanup":
                return any(
                    row.due_at is not None and row.due_at <= now
                    for task_id in data.cleanup_due
                    for row in data.cleanup[task_id].values()
                )

    async def survey(self, limit: int, tenants: Collection[str] | None) -> WorkSurvey:
        """Return up to ``limit`` tenants for each kind of work except deliveries."""
        kinds: tuple[WorkKind, ...] = ("due", "working", "uncopied", "cleanup")
        now = self._engine.now()
        served = {
            tenant: data
            for tenant, data in sorted(self._engine.by_tenant(LedgerData).items())
            if tenants is None or tenant in tenants
        }
        found = {
            kind: [tenant for tenant, data in served.items() if self._has(kind, data)][:limit]
            for kind in kinds
        }
        later = [next((at for at, _ in data.queue if at > now), None) for data in served.values()]
        seconds = min(((at - now).total_seconds() for at in later if at is not None), default=None)
        return WorkSurvey(found, seconds)

    @property
    def notified(self) -> bool:
        """Always ``True``: there is only one process."""
        return True

    async def notices(self) -> AsyncGenerator[None, None]:
        """Yield at the start, and when a task may have become ready to run."""
        with self._engine.table("", Doorbell).bell() as rung:
            while True:
                yield
                await rung.wait()
                rung.clear()

    async def scheduled(self, tenants: Sequence[str] | None, limit: int) -> ScheduledWork:
        """Return the tenants whose schedules are due, and the seconds until the next one is due."""
        now = self._engine.now()
        times = {
            tenant: min(
                row.next_at
                for row in data.rows.values()
                if row.next_at is not None and not row.stored.paused
            )
            for tenant, data in self._engine.by_tenant(ScheduleData).items()
            if (tenants is None or tenant in tenants)
            and any(row.next_at and not row.stored.paused for row in data.rows.values())
        }
        due = sorted(tenant for tenant, at in times.items() if at <= now)
        first = min(times.values(), default=None)
        return ScheduledWork(due[:limit], None if first is None else (first - now).total_seconds())

    async def wait(self, timeout_seconds: float) -> None:
        """Return when a task may have become ready to run, or at the timeout."""
        with self._engine.table("", Doorbell).bell() as rung, suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await rung.wait()

    async def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield at the start, and when a client may have sent a request to a task of the worker."""
        with self._engine.table("", Doorbell).bell(worker) as rung:
            while True:
                yield
                await rung.wait()
                rung.clear()
