"""A worker: claims tasks of all tenants, runs their handlers, and takes over from the dead."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.kernel.core.checks import check_count, check_id, check_seconds
from holdfast.kernel.core.errors import ConfigError, HoldfastError
from holdfast.kernel.core.ids import new_ref
from holdfast.kernel.core.lifecycle import Actor
from holdfast.kernel.storage.ledger_records import LEASE_SECONDS, ClaimedTask, TaskRecord
from holdfast.runtime.app import App
from holdfast.runtime.cleanup import sweep
from holdfast.runtime.completions import Completions
from holdfast.runtime.heart import Heart
from holdfast.runtime.held import Held, Stop
from holdfast.runtime.remember import Remembering
from holdfast.runtime.runner import Ending, Runner
from holdfast.runtime.workplace import Workplace

_log = logging.getLogger("holdfast.worker")
TENANTS = 10_000
"""How many tenants with work one look takes in."""


FIRST_LOOK_SECONDS = 0.01
"""How soon to look again when something was due and nothing could be claimed."""


class Worker:
    """Runs the handlers of an app until it is stopped.

    Any number of workers share the tasks, and any of them may die at any moment: what it held goes
    on elsewhere after its lease. ::

        worker = Worker(app, state, concurrency=20)
        loop.add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()
    """

    def __init__(
        self,
        app: App,
        state: Workplace,
        *,
        name: str = "",
        concurrency: int = 10,
        tenants: Sequence[str] | None = None,
        lease_seconds: float = LEASE_SECONDS,
        poll_seconds: float = 1.0,
        recovery_seconds: float = 5.0,
        grace_seconds: float = 30.0,
        watch: Callable[[Ending], None] | None = None,
    ) -> None:
        if not app.agents:
            raise ConfigError(f"the app {app.name} has no handler: add one with @app.handler")
        self.name = check_id("name", name or f"{platform.node()}-{os.getpid()}-{new_ref()[:6]}")
        self._app = app
        self._state = state
        self._concurrency = check_count("concurrency", concurrency) or 1
        self._tenants = None if tenants is None else list(tenants)
        self._lease_seconds = check_seconds("lease_seconds", lease_seconds)
        self._poll_seconds = check_seconds("poll_seconds", poll_seconds)
        self._recovery_seconds = check_seconds("recovery_seconds", recovery_seconds)
        self._grace_seconds = grace_seconds
        self._watch = watch or (lambda _ending: None)
        self._running: dict[asyncio.Task[None], Held] = {}
        self._alone: Held | None = None
        self._places: dict[str, Workplace] = {}
        self._completions: dict[str, Completions] = {}
        self._stopping = False
        self._wake = asyncio.Event()
        self._looked_at_tenants = False
        self._runs = 0
        self._last_tenant = ""
        self._remembering = Remembering(app)
        self._rested = asyncio.Event()

    @property
    def running(self) -> int:
        """How many handlers run now."""
        return len(self._running)

    def stop(self) -> None:
        """Claim no more, let handlers end within the grace time, hand the rest back."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Work until ``stop`` is called, then drain.

        ::

            await worker.run()
        """
        _log.info("worker %s: up to %s tasks at once", self.name, self._concurrency)
        async with Heart(self._state, lease_seconds=self._lease_seconds) as heart:
            helpers = [
                asyncio.create_task(self._listen()),
                asyncio.create_task(self._recover()),
                asyncio.create_task(self._remember()),
            ]
            patience = FIRST_LOOK_SECONDS
            try:
                while not self._stopping:
                    self._wake.clear()
                    claimed = await self._claim(heart)
                    # Something was due and nothing could be had: a row that is being written just
                    # now is passed over, so look again soon, and less soon the longer it lasts.
                    passed_over = self._looked_at_tenants and not claimed and self._free > 0
                    patience = (
                        min(patience * 2, self._poll_seconds)
                        if passed_over
                        else (FIRST_LOOK_SECONDS)
                    )
                    if not claimed or self._free == 0:
                        await self._pause(patience if passed_over else self._poll_seconds)
                await self._drain()
                await self._remember_all()
            finally:
                for one in [*helpers, *self._running]:
                    one.cancel()
                await asyncio.gather(*helpers, *self._running, return_exceptions=True)
        _log.info("worker %s: stopped after %s runs", self.name, self._runs)

    async def run_until_idle(self) -> int:
        """Do what is due until nothing is, and return how many runs of handlers it took.

        ::

            await worker.run_until_idle()
        """
        async with Heart(self._state, lease_seconds=self._lease_seconds) as heart:
            try:
                while await self._claim(heart) or self._running:
                    if self._running:
                        await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                await self._remember_all()
            finally:
                for one in self._running:
                    one.cancel()
                await asyncio.gather(*self._running, return_exceptions=True)
        return self._runs

    @property
    def _free(self) -> int:
        return 0 if self._alone else self._concurrency - len(self._running)

    async def _claim(self, heart: Heart) -> int:
        """Claim for every free hand; how many tasks were begun."""
        begun = 0
        try:
            for tenant in await self._turns():
                if self._free <= 0 or self._stopping:
                    break
                self._last_tenant = tenant
                place = self._place(tenant)
                claimed_at = time.monotonic()
                claimed = await place.tasks.claim(
                    self.name,
                    agents=self._app.agents,
                    limit=self._free,
                    lease_seconds=self._lease_seconds,
                    serial_contexts=self._app.serial_contexts,
                )
                alone = await self._to_be_alone(place, claimed)
                for one in claimed:
                    held = self._begin(place, one, claimed_at, heart)
                    if one is alone:
                        self._alone = held
                    elif alone is not None:
                        held.stop(Stop.ASIDE)
                begun += len(claimed)
        except HoldfastError as error:
            _log.warning("worker %s: cannot claim, will try again: %s", self.name, error)
            await asyncio.sleep(min(self._poll_seconds, 1.0))
        return begun

    async def _to_be_alone(
        self, place: Workplace, claimed: Sequence[ClaimedTask]
    ) -> ClaimedTask | None:
        """A task at its last attempt whose worker died, if there is one.

        Perhaps it killed its worker, and all else that was at work there lost an attempt with it.
        Alone it takes nobody along, and a neighbour that was taken along is not blamed for it.
        """
        for one in claimed:
            limit = self._app.handler_of(one.task.agent).attempts_of(one.task)
            if 2 <= limit == one.task.attempts:
                try:
                    before = await place.tasks.events(
                        one.task.id, after=one.task.version - 2, limit=1, owner=None
                    )
                except HoldfastError as error:
                    # What is claimed must be begun all the same.
                    _log.warning("task %s: its past cannot be read: %s", one.task.id, error)
                    return None
                if before and before[0].by is Actor.RECOVERY:
                    return one
        return None

    async def _turns(self) -> list[str]:
        """The tenants to claim for; who was first last time is last now, so that none starves."""
        tenants = self._tenants or await self._state.work.tenants(limit=TENANTS)
        self._looked_at_tenants = self._tenants is None and bool(tenants)
        later = [one for one in tenants if one > self._last_tenant]
        return later + [one for one in tenants if one <= self._last_tenant]

    def _place(self, tenant: str) -> Workplace:
        if tenant not in self._places:
            mine = tenant == self._state.tenant
            self._places[tenant] = self._state if mine else self._state.for_tenant(tenant)
            self._completions[tenant] = Completions(self._places[tenant].tasks)
        return self._places[tenant]

    def _begin(
        self,
        place: Workplace,
        claimed: ClaimedTask,
        claimed_at: float,
        heart: Heart,
    ) -> Held:
        held = Held(
            place.tenant, claimed.lease, claimed_at=claimed_at, lease_seconds=self._lease_seconds
        )
        handler = self._app.handler_of(claimed.task.agent)
        if handler.timeout_seconds is not None:
            held.beats_until = claimed_at + handler.timeout_seconds
        heart.watch(held)
        runner = Runner(place, handler, self._completions[place.tenant].complete, self._remembering)
        work = asyncio.create_task(self._see_through(runner, claimed, held, heart))
        self._running[work] = held
        return held

    async def _see_through(
        self, runner: Runner, claimed: ClaimedTask, held: Held, heart: Heart
    ) -> None:
        task, begun = claimed.task, time.monotonic()
        facts = _facts(held.tenant, task)
        if held is self._alone:
            await self._others_ended(held)
        _log.info("task %s: attempt %s", task.id, task.attempts, extra=facts)
        try:
            ending = await runner.run(claimed, held)
        except Exception as error:  # noqa: BLE001 - one task must not end the worker
            # Not even a failed attempt could be reported; recovery will find the task by its lease.
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
        finally:
            heart.forget(held)
            self._alone = None if held is self._alone else self._alone
            self._runs += 1
            self._rested.set()
            work = asyncio.current_task()
            if work is not None:
                self._running.pop(work, None)
            self._wake.set()

    async def _others_ended(self, held: Held) -> None:
        """Wait until nothing else is at work here; nothing is claimed meanwhile."""
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
        """Wake up when there may be new work."""
        while not self._stopping:
            try:
                await self._state.work.wait(timeout_seconds=self._poll_seconds)
            except HoldfastError as error:
                _log.info("worker %s: only polling: %s", self.name, error)
                await asyncio.sleep(self._poll_seconds)
            self._wake.set()

    async def _recover(self) -> None:
        """Take back what dead workers held, and tidy up after what ended without them."""
        while not self._stopping:
            try:
                working = self._tenants or await self._state.work.tenants("working", limit=TENANTS)
                for tenant in working:
                    place = self._place(tenant)
                    for task in await place.tasks.recover_expired():
                        facts = _facts(tenant, task) | {"outcome": str(task.state)}
                        _log.warning(
                            "task %s: its worker is gone, now %s", task.id, task.state, extra=facts
                        )
                        self._wake.set()
                for place in list(self._places.values()):
                    await sweep(place)
            except HoldfastError as error:
                _log.warning("worker %s: recovery will try again: %s", self.name, error)
            await asyncio.sleep(self._recovery_seconds)

    async def _remember(self) -> None:
        """Copy what was said in tasks that rest, also where the worker died before it could."""
        while not self._stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._recovery_seconds):
                    await self._rested.wait()
            self._rested.clear()
            try:
                tenants = self._tenants or await self._state.work.tenants("uncopied", limit=TENANTS)
            except HoldfastError as error:
                _log.warning("worker %s: messages are copied later: %s", self.name, error)
                continue
            for tenant in tenants:
                await self._remember_for(tenant)

    async def _remember_all(self) -> None:
        for tenant in list(self._places):
            await self._remember_for(tenant)

    async def _remember_for(self, tenant: str) -> None:
        try:
            await self._remembering.rested(self._place(tenant))
        except Exception as error:  # noqa: BLE001 - one tenant must not stop another's memory
            expected = isinstance(error, HoldfastError)
            _log.error(
                "tenant %s: messages of tasks are copied later: %s",
                *(tenant, error),
                exc_info=not expected,
            )

    async def _drain(self) -> None:
        """Let handlers end within the grace time, then hand back what they have not done."""
        if self._running:
            _log.info("worker %s: waiting for %s handlers", self.name, len(self._running))
            await asyncio.wait(self._running, timeout=self._grace_seconds)
        for held in list(self._running.values()):
            held.stop(Stop.DRAIN)
        if self._running:
            await asyncio.wait(self._running, timeout=self._lease_seconds)


def _facts(tenant: str, task: TaskRecord) -> dict[str, object]:
    """What every log line about a task tells, for programs that read logs."""
    return {
        "task": task.id,
        "tenant": tenant,
        "agent": str(task.agent),
        "attempt": task.attempts,
    }
