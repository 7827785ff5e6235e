"""How a worker runs the ticks of schedules: it computes when the next one is due, and waits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing, suppress

from holdfast.runtime.schedules import ScheduledApp
from holdfast.runtime.stores import TaskStores
from holdfast.spi.schedules import BELL
from holdfast.values.errors import HoldfastError

_log = logging.getLogger("holdfast.worker")
RETRY_SECONDS = 1.0
LOOK_SECONDS = 60.0
"""Longest wait. A notice wakes the worker when a schedule changes; this is for lost notices."""
AT_ONCE = 1000
"""Maximum number of tenants per query, and of schedules of a tenant that run at once."""


class Ticks:
    """Submits the tasks of due schedules, in all tenants or in those given.

    ::

        ticks = Ticks(app, state, tenants=None)
        await ticks.run_due()
    """

    def __init__(self, app: ScheduledApp, state: TaskStores, tenants: Sequence[str] | None) -> None:
        self._app = app
        self._state = state
        self._tenants = tenants
        self._declared = False

    async def run(self) -> None:
        """Submit the tasks of due schedules, and wait until the next is due or one is changed."""
        # The bell is there before the schedules are read, so that no change is missed.
        async with aclosing(self._state.ops.work.requests(BELL)) as changes:
            await anext(changes)
            wait = await self.run_due()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await anext(changes)

    async def run_due(self) -> float:
        """Submit the tasks of due schedules. Returns the seconds to wait before the next call."""
        await self._declare()
        work = self._state.ops.work
        found = await work.scheduled(tenants=self._tenants, limit=AT_ONCE)
        failed = False
        for tenant in found.tenants:
            try:
                for task in await self._stores(tenant).schedules.run_due(limit=AT_ONCE):
                    facts = {"task": task.id, "tenant": tenant, "agent": str(task.agent)}
                    _log.info("task %s: scheduled", task.id, extra=facts)
            except HoldfastError as error:
                _log.warning("schedules of tenant %s will try again: %s", tenant, error)
                failed = True
        if failed:
            return RETRY_SECONDS
        if found.tenants:
            # What was due has its next tick now.
            found = await work.scheduled(tenants=self._tenants, limit=AT_ONCE)
        if found.wait_seconds is None:
            return LOOK_SECONDS
        return min(max(found.wait_seconds, 0.01), LOOK_SECONDS)

    async def _declare(self) -> None:
        """Store the schedules that the app declares, once; several workers may do so."""
        if not self._declared:
            for tenant in self._tenants or [self._state.tenant]:
                for one in self._app.schedules:
                    await self._stores(tenant).schedules.upsert(one.id, one.cron, **one.options)
            self._declared = True

    def _stores(self, tenant: str) -> TaskStores:
        return self._state if tenant == self._state.tenant else self._state.for_tenant(tenant)
