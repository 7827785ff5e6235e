"""A worker: claims tasks of all tenants, runs handlers, and recovers tasks of dead workers."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import platform
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from holdfast.runtime.app import App
from holdfast.runtime.background import BackgroundJob
from holdfast.runtime.child_agents import ChildAgents
from holdfast.runtime.cleanup import sweep, sweep_earlier
from holdfast.runtime.completions import Completions
from holdfast.runtime.lease_keeper import LeaseKeeper
from holdfast.runtime.remember import Remembering
from holdfast.runtime.rounds import Rounds
from holdfast.runtime.runner import Ending, Runner, log_fields
from holdfast.runtime.running_task import RunningTask, Stop
from holdfast.runtime.stores import TaskStores, check_state, check_stores
from holdfast.runtime.ticks import Ticks
from holdfast.values.checks import check_count, check_id, check_seconds
from holdfast.values.errors import ConfigError, HoldfastError
from holdfast.values.ids import new_ref
from holdfast.values.lifecycle import Actor
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import LEASE_SECONDS, ClaimedTask

_log = logging.getLogger("holdfast.worker")
IDLE_SECONDS = 7.5
"""Longest pause between two queries of a worker without work, where notices arrive."""

FIRST_LOOK_SECONDS = 0.01
"""First pause before the next claim if tasks were due and none could be claimed."""


class Worker:
    """Runs the handlers of an app until ``stop`` is called.

    Any number of workers share the tasks. If a worker dies, another one continues its tasks after
    their leases expire. ::

        worker = Worker(app, state, concurrency=20)
        loop.add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()
    """

    def __init__(
        self,
        app: App,
        state: TaskStores,
        *,
        name: str | None = None,
        concurrency: int = 10,
        tenants: Sequence[str] | None = None,
        lease_seconds: float = LEASE_SECONDS,
        poll_seconds: float = 1.0,
        recovery_seconds: float = 5.0,
        grace_seconds: float = 30.0,
        watch: Callable[[Ending], None] | None = None,
    ) -> None:
        check_state(state)
        if not app.agents:
            raise ConfigError(f"the app {app.name} has no handler: add one with @app.handler")
        self.name = check_id("name", name or f"{platform.node()}-{os.getpid()}-{new_ref()[:6]}")
        self._app, self._state, self._runner = app, state, state.runner
        self._concurrency = check_count("concurrency", concurrency) or 1
        self._lease_seconds = check_seconds("lease_seconds", lease_seconds)
        self._poll_seconds = check_seconds("poll_seconds", poll_seconds)
        self._recovery_seconds = check_seconds("recovery_seconds", recovery_seconds)
        self._grace_seconds = grace_seconds
        self._watch = watch or (lambda _ending: None)
        self._running: dict[asyncio.Task[None], RunningTask] = {}
        self._alone: RunningTask | None = None
        self._stores: dict[str, TaskStores] = {}
        self._completions: dict[str, Completions] = {}
        self._stopping, self._wake = False, asyncio.Event()
        self._idle_seconds = max(poll_seconds, min(1.5 * recovery_seconds, IDLE_SECONDS))
        self._rounds = Rounds(state, tenants, max_age_seconds=self._idle_seconds)
        self._found_due = False
        self._runs = 0
        self._remembering = Remembering(app)
        self._child_agents = ChildAgents(app.agents)
        self._rested = asyncio.Event()
        self._swept_earlier: set[str] = set()
        self._resources: Any = None
        self._ticks = Ticks(app, state, tenants)

    @property
    def running(self) -> int:
        """How many handlers run now."""
        return len(self._running)

    def stop(self) -> None:
        """Stop claiming tasks, wait ``grace_seconds`` for handlers, release unfinished tasks."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Work until ``stop`` is called, then drain.

        ::

            await worker.run()
        """
        _log.info("worker %s: up to %s tasks at once", self.name, self._concurrency)
        async with self._working() as keeper:
            jobs = [
                BackgroundJob("listening for work", self._listen, pause_seconds=0),
                BackgroundJob("recovery", self._recover, pause_seconds=self._recovery_seconds),
                BackgroundJob("cleanup", self._sweep, pause_seconds=self._recovery_seconds),
                BackgroundJob("schedules", self._ticks.run, pause_seconds=0),
                BackgroundJob("memory of tasks", self._remember, pause_seconds=0),
            ]
            patience = FIRST_LOOK_SECONDS
            try:
                while not self._stopping:
                    for job in jobs:
                        job.check()
                    self._wake.clear()
                    claimed = await self._claim(keeper)
                    # Tasks were due and none was claimed: a claim skips rows that are locked, and
                    # those of a full limit. Claim again soon, with a pause that doubles each time.
                    passed_over = self._found_due and not claimed and self._free > 0
                    longest = self._poll_seconds if self._app.limits else self._idle_pause()
                    patience = min(patience * 2, longest) if passed_over else FIRST_LOOK_SECONDS
                    if not claimed or self._free == 0:
                        await self._pause(patience if passed_over else self._idle_pause())
                    if self._wake.is_set():
                        # There is new work. Its row may still be locked, so claim soon again.
                        patience = FIRST_LOOK_SECONDS
                await self._drain()
                await self._remember_all()
            finally:
                for one in self._running:
                    one.cancel()
                await asyncio.gather(
                    *(job.aclose() for job in jobs), *self._running, return_exceptions=True
                )
        _log.info("worker %s: stopped after %s runs", self.name, self._runs)

    async def run_until_idle(self) -> int:
        """Run due tasks until none is due. Returns how many runs of handlers it took.

        ::

            await worker.run_until_idle()
        """
        async with self._working() as keeper:
            try:
                await self._ticks.run_due()
                # Counted before the claim: what ends meanwhile may have submitted tasks.
                while len(self._running) + await self._claim(keeper):
                    if self._running:
                        await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                await self._remember_all()
            finally:
                for one in self._running:
                    one.cancel()
                await asyncio.gather(*self._running, return_exceptions=True)
        return self._runs

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[LeaseKeeper]:
        """Open the app's resources and extend leases while handlers run."""
        check_stores(self._state)
        async with (
            self._app.resources() as self._resources,
            LeaseKeeper(self._state, self.name, lease_seconds=self._lease_seconds) as keeper,
        ):
            yield keeper

    @property
    def _free(self) -> int:
        return 0 if self._alone else self._concurrency - len(self._running)

    async def _claim(self, keeper: LeaseKeeper) -> int:
        """Claim a task for each free slot. Returns how many were started."""
        if self._free <= 0:
            return 0

        async def claim(tenant: str, most: int) -> int:
            return await self._claim_of(tenant, most, keeper)

        try:
            due = await self._rounds.due()
            self._found_due = bool(due)
            return await self._rounds.share(due, lambda: 0 if self._stopping else self._free, claim)
        except HoldfastError as error:
            _log.warning("worker %s: cannot claim, will try again: %s", self.name, error)
            await asyncio.sleep(min(self._poll_seconds, 1.0))
            return 0

    async def _claim_of(self, tenant: str, most: int, keeper: LeaseKeeper) -> int:
        """Claim tasks of one tenant and start them. Returns how many."""
        stores = self._stores_of(tenant)
        claimed_at = time.monotonic()
        claimed = await stores.tasks.claim(
            self.name,
            limit=most,
            lease_seconds=self._lease_seconds,
            **self._app.claims,
        )
        alone = await self._to_be_alone(stores, claimed)
        for one in claimed:
            held = self._begin(stores, one, claimed_at, keeper)
            if one is alone:
                self._alone = held
            elif alone is not None:
                held.stop(Stop.ISOLATION)
        return len(claimed)

    async def _to_be_alone(
        self, stores: TaskStores, claimed: Sequence[ClaimedTask]
    ) -> ClaimedTask | None:
        """Return a claimed task at its last attempt whose last worker died, or ``None``.

        The task may have crashed that worker, and then every other task there lost an attempt too.
        Run alone, it cannot cost other tasks an attempt. And a task that only ran beside the one
        that crashed the worker gets a last attempt that the other cannot spoil.
        """
        for one in claimed:
            limit = self._app.handler_for(one.task).attempts_of(one.task)
            if 2 <= limit == one.task.attempts:
                try:
                    before = await stores.tasks.events(
                        one.task.id, after_seq=one.task.version - 2, limit=1, owner=ANY_OWNER
                    )
                except HoldfastError as error:
                    # The claimed tasks must be started all the same.
                    _log.warning("task %s: its timeline cannot be read: %s", one.task.id, error)
                    return None
                if before and before[0].by is Actor.RECOVERY:
                    return one
        return None

    def _idle_pause(self) -> float:
        """Return how many seconds to wait for a notice: at most until the next task becomes due."""
        longest = self._idle_seconds if self._state.ops.work.notified else self._poll_seconds
        return max(min(longest, self._rounds.next_due_seconds or longest), FIRST_LOOK_SECONDS)

    def _stores_of(self, tenant: str) -> TaskStores:
        if tenant not in self._stores:
            mine = tenant == self._state.tenant
            self._stores[tenant] = self._state if mine else self._state.for_tenant(tenant)
            self._completions[tenant] = Completions(self._stores[tenant].tasks)
        return self._stores[tenant]

    def _begin(
        self,
        stores: TaskStores,
        claimed: ClaimedTask,
        claimed_at: float,
        keeper: LeaseKeeper,
    ) -> RunningTask:
        held = RunningTask(
            stores.tenant, claimed.lease, claimed_at=claimed_at, lease_seconds=self._lease_seconds
        )
        handler = self._app.handler_for(claimed.task)
        if handler.timeout_seconds is not None:
            held.beats_until = claimed_at + handler.timeout_seconds
        keeper.watch(held)
        complete = self._completions[stores.tenant].complete
        runner = self._runner(stores, handler, complete, self._remembering, self._resources)
        work = asyncio.create_task(self._see_through(runner, claimed, held, keeper))
        self._running[work] = held
        return held

    async def _see_through(
        self, runner: Runner, claimed: ClaimedTask, held: RunningTask, keeper: LeaseKeeper
    ) -> None:
        task, begun = claimed.task, time.monotonic()
        facts = log_fields(held.tenant, task)
        if held is self._alone:
            await self._others_ended(held)
        _log.info("task %s: attempt %s", task.id, task.attempts, extra=facts)
        try:
            ending = await runner.run(claimed, held)
        except Exception as error:  # noqa: BLE001 - one task must not end the worker
            # Not even the failed attempt could be reported: recovery takes the task back when its
            # lease expires.
            expected = isinstance(error, HoldfastError)
            _log.error("task %s: %s", task.id, error, extra=facts, exc_info=not expected)
        else:
            seconds = round(time.monotonic() - begun, 3)
            facts |= {"outcome": ending.outcome, "seconds": seconds}
            if ending.state is not None and ending.why:
                facts["reason"] = ending.why
            _log.info("task %s: %s", task.id, ending.outcome, extra=facts)
            self._watch(
                dataclasses.replace(
                    ending,
                    tenant=held.tenant,
                    agent=str(task.agent),
                    attempt=task.attempts,
                    seconds=seconds,
                )
            )
            keeper.forget(held)
            await self._child_agents.check(self._stores_of(held.tenant).tasks, held)
        finally:
            keeper.forget(held)
            self._alone = None if held is self._alone else self._alone
            self._runs += 1
            self._rested.set()
            work = asyncio.current_task()
            if work is not None:
                self._running.pop(work, None)
            self._wake.set()

    async def _others_ended(self, held: RunningTask) -> None:
        """Wait, claiming no tasks, until no other handler runs here or the task is stopped."""
        while held.stopped is None:
            others = [work for work, other in self._running.items() if other is not held]
            if not others:
                return
            await asyncio.wait(
                others, timeout=self._poll_seconds, return_when=asyncio.FIRST_COMPLETED
            )

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _listen(self) -> None:
        """Wake the claim loop when there may be new work."""
        async with aclosing(self._state.ops.work.notices()) as notices:
            async for _ in notices:
                self._wake.set()

    async def _recover(self) -> None:
        """Recover the tasks of dead workers, in each tenant that has running tasks."""
        for tenant in await self._rounds.tenants("working"):
            await self._each("recovery", tenant, self._recover_tenant)

    async def _recover_tenant(self, stores: TaskStores) -> None:
        for task in await stores.tasks.recover_expired():
            facts = log_fields(stores.tenant, task) | {"outcome": str(task.state)}
            _log.warning(
                "task %s: recovered from a dead worker, now %s", task.id, task.state, extra=facts
            )
            self._wake.set()

    async def _sweep(self) -> None:
        """Process cleanup marks of ended tasks whose worker died, in each tenant that has any."""
        for tenant in await self._rounds.tenants("cleanup"):
            await self._each("cleanup", tenant, sweep)
        for tenant in list(self._stores):
            if tenant not in self._swept_earlier:
                await self._each("cleanup", tenant, self._sweep_earlier)

    async def _sweep_earlier(self, stores: TaskStores) -> None:
        if not await sweep_earlier(stores):
            self._swept_earlier.add(stores.tenant)

    async def _each(
        self, what: str, tenant: str, do: Callable[[TaskStores], Awaitable[object]]
    ) -> None:
        """Call ``do`` for a tenant; log its errors, so that they do not stop other tenants."""
        try:
            await do(self._stores_of(tenant))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one tenant's data
            _log.error(
                "worker %s: %s of tenant %s will try again: %s",
                *(self.name, what, tenant, error),
                extra={"tenant": tenant},
                exc_info=not isinstance(error, HoldfastError),
            )

    async def _remember(self) -> None:
        """Copy the messages of resting tasks to memory, also those of workers that died."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._recovery_seconds):
                await self._rested.wait()
        fresh = self._rested.is_set()
        self._rested.clear()
        for tenant in await self._rounds.tenants("uncopied", fresh=fresh):
            await self._each("memory", tenant, self._remembering.rested)

    async def _remember_all(self) -> None:
        for tenant in list(self._stores):
            await self._each("memory", tenant, self._remembering.rested)

    async def _drain(self) -> None:
        """Wait ``grace_seconds`` for handlers to end, then release the tasks that still run."""
        if self._running:
            _log.info("worker %s: waiting for %s handlers", self.name, len(self._running))
            await asyncio.wait(self._running, timeout=self._grace_seconds)
        for held in list(self._running.values()):
            held.stop(Stop.DRAIN)
        if self._running:
            await asyncio.wait(self._running, timeout=self._lease_seconds)
