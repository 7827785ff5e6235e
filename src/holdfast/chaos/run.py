"""One run of ``holdfast chaos``: work and faults concurrently, then the verdict."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import shutil
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from holdfast.chaos.addresses import Given
from holdfast.chaos.cleanup import remove_tenant
from holdfast.chaos.job import Job
from holdfast.chaos.linked_tasks import LinkedWork, linked_tenant
from holdfast.chaos.memory import MemoryWork
from holdfast.chaos.plan import Plan, replicated
from holdfast.chaos.processes import Processes, Programs
from holdfast.chaos.schedule import Fault
from holdfast.chaos.servers import Servers
from holdfast.chaos.tasks import TaskWork
from holdfast.chaos.verdict import Findings, Times, Verdict
from holdfast.values.ids import new_ref
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings

SERVERS = ("postgres", "valkey")
LOOK_SECONDS = 0.1
RESERVE = 4
"""How many tasks are not submitted until the ledger has refused a write of a frozen worker."""

FREEZE_SECONDS = 3.0
"""How long an extra worker is frozen: longer than a lease."""


class ChaosRun:
    """A run, on servers that it starts or on given ones.

    ``progress`` is called with the current action and the share of the time that has passed;
    ``programs`` are the modules that its processes run. ::

        verdict = await ChaosRun(Plan.within(60, seed=7)).run()
        assert verdict.held, verdict.broken
    """

    def __init__(
        self,
        plan: Plan,
        progress: Callable[[str, float], None] = lambda _text, _share: None,
        *,
        given: Given | None = None,
        programs: Programs | None = None,
    ) -> None:
        self._plan = plan
        self._progress = progress
        self._given = given
        self._programs = programs or Programs()
        self._findings = Findings()
        self._done: Counter[str] = Counter()
        self._tenant = f"chaos-{new_ref()[:12].lower()}"
        self._verdict = Verdict(plan.seed, tenant=self._tenant)
        disks = any(kind.startswith("fill") and count for kind, count in plan.counts.items())
        names = list(SERVERS) if "memory" in plan.parts else ["postgres"]
        several = replicated(postgres=plan.postgres, valkey=plan.valkey)
        self._site = Servers(given, names, disks=disks, replicated=several)
        self._tasks: TaskWork | None = None
        self._linked: LinkedWork | None = None
        self._memory: MemoryWork | None = None

    async def run(self) -> Verdict:
        """Run the work and the faults, then check. ``verdict.broken`` lists violated invariants."""
        begun = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="hf-chaos-"))
        self._progress("starting the servers", 0.0)
        try:
            async with self._site.open(), self._opened(folder) as processes_now:
                await self._under_fire(processes_now)
                await self._until_done(processes_now)
                self._progress("checking every invariant", 1.0)
                await self._check(processes_now)
        except BaseException:
            self._progress(f"the logs of the processes are in {folder}", 1.0)
            raise
        self._finish(time.monotonic() - begun)
        if self._verdict.held:
            shutil.rmtree(folder)
            if self._given is not None:
                await remove_tenant(self._tenant, self._given)
        else:
            self._verdict.logs = str(folder)
        return self._verdict

    @asynccontextmanager
    async def _opened(self, folder: Path) -> AsyncIterator[Processes]:
        """Open the states for the checks, and start the processes."""
        plan, site = self._plan, self._site
        job = Job(
            url=site.url("postgres"),
            redis=site.url("valkey"),
            tenant=self._tenant,
            folder=str(folder),
            level=plan.level if site.own else "",
            sessions=plan.sessions,
        )
        settings = Settings(auto_migrate=True) if site.own else Settings.from_environment()
        settings = dataclasses.replace(
            settings, tenant=self._tenant, ack_level=job.level, redis_url="", max_connections=6
        )
        async with AsyncExitStack() as stack:
            durable = await stack.enter_async_context(open_state(job.url, settings=settings))
            site.probes["postgres"] = lambda: durable.short_term.set_state("probe", {})
            processes_now = Processes(job, self._programs, folder, configured=not site.own)
            stack.callback(processes_now.stop)
            if "memory" in plan.parts:
                hybrid = await stack.enter_async_context(
                    open_state(job.url, redis=job.redis, settings=settings, background=False)
                )
                site.probes["valkey"] = hybrid.ops.hybrid.hot.stats
                self._memory = MemoryWork(
                    *(hybrid, durable, folder, self._findings),
                    processes=plan.agent_processes,
                    sessions=plan.sessions,
                    shards=settings.redis_shards,
                )
                if plan.until_fallback:
                    site.holds["valkey"] = functools.partial(
                        self._memory.went_aside, within_seconds=plan.limit_seconds
                    )
                processes_now.start(
                    "agent", plan.agent_processes, pace_seconds=plan.agent_pace_seconds
                )
                processes_now.start("consolidator", plan.consolidators)
            if "tasks" in plan.parts:
                reserve = min(RESERVE, plan.tasks // 4) if plan.counts.get("freeze worker") else 0
                self._tasks = TaskWork(durable, plan.tasks, folder, self._findings, reserve=reserve)
                processes_now.tasks = self._tasks
                if plan.linked:
                    apart = durable.for_tenant(linked_tenant(self._tenant))
                    self._linked = LinkedWork(apart, plan.linked, self._findings)
                processes_now.start("worker", plan.workers, pace_seconds=plan.task_pace_seconds)
            yield processes_now

    async def _under_fire(self, processes_now: Processes) -> None:
        """Inject the faults at their times, while tasks are submitted and agents record."""
        async with asyncio.TaskGroup() as group:
            while not processes_now.ready:
                processes_now.keep()
                await asyncio.sleep(LOOK_SECONDS)
            if self._memory is not None:
                await self._memory.recording(within_seconds=self._plan.limit_seconds)
            if self._tasks is not None:
                # The last task is submitted early enough to be done soon after the last fault.
                group.create_task(self._tasks.submit(over_seconds=self._plan.seconds * 0.8))
            if self._linked is not None:
                group.create_task(self._linked.submit(over_seconds=self._plan.seconds * 0.8))
            begun, passed = time.monotonic(), 0.0
            faults = deque(self._plan.faults)
            begun_faults: list[asyncio.Task[None]] = []
            # A fault may last longer, and waits for processes that have to be replaced.
            while (
                faults or passed < self._plan.seconds or not all(one.done() for one in begun_faults)
            ):
                while faults and faults[0].at_seconds <= passed:
                    begun_faults.append(
                        group.create_task(self._do(faults.popleft(), processes_now))
                    )
                processes_now.keep()
                self._progress(self._summary(), min(1.0, passed / self._plan.seconds))
                await asyncio.sleep(LOOK_SECONDS)
                passed = time.monotonic() - begun

    async def _do(self, fault: Fault, processes_now: Processes) -> None:
        if fault.victim in SERVERS:
            if why := self._site.cannot(fault):
                self._verdict.not_done[fault.kind] = why
                return
            await self._site.do(fault)
        else:
            await processes_now.do(fault)
        self._done[fault.kind] += 1

    async def _until_done(self, processes_now: Processes) -> None:
        """Wait until the agents have ended, all events are in Postgres and all tasks completed."""
        waits: list[Awaitable[None]] = []
        if self._memory is not None:
            waits.append(self._recorded(processes_now, self._memory))
        if self._tasks is not None:
            waits.append(self._completed(processes_now, self._tasks))
        if self._linked is not None:
            waits.append(self._linked.done())
        waiting = asyncio.gather(*waits)
        limit = time.monotonic() + self._plan.limit_seconds
        while not waiting.done():
            processes_now.keep()
            self._progress(self._summary(), 1.0)
            if time.monotonic() > limit:
                waiting.cancel()
                self._overdue()
                return
            await asyncio.sleep(LOOK_SECONDS)
        await waiting

    async def _completed(self, processes_now: Processes, tasks: TaskWork) -> None:
        """Wait for all tasks and, if workers were frozen, for a refused write of one of them.

        Without a refused write the run does not test invariant P3. If there was none, more workers
        are frozen, now that there are no other faults.
        """
        while self._done["freeze worker"] and not tasks.zombie_refused:
            if await tasks.all_done() and not await tasks.submit_next():
                break
            await processes_now.do(Fault(0.0, "freeze worker", lasts_seconds=FREEZE_SECONDS))
        while await tasks.submit_next():
            pass
        await tasks.done()

    async def _recorded(self, processes_now: Processes, memory: MemoryWork) -> None:
        await processes_now.finish("agent")
        await memory.drained()

    def _overdue(self) -> None:
        after = f"{self._plan.limit_seconds:g} s after the last fault"
        if self._memory is not None and self._memory.left:
            self._findings.add("P1", f"{self._memory.left} events wait in Valkey {after}")
        if self._tasks is not None and self._tasks.left:
            # Without a refused write the verdict lists P3 as unproved.
            self._findings.add("I1", f"{self._tasks.left} tasks are not completed {after}")

    async def _check(self, processes_now: Processes) -> None:
        if self._tasks is not None:
            await self._tasks.check(processes_now.deaths)
        if self._linked is not None:
            await self._linked.check()
        if self._memory is not None:
            await self._memory.check()
        self._verdict.processes_ended = processes_now.ended

    def _finish(self, seconds: float) -> None:
        verdict, tasks, memory = self._verdict, self._tasks, self._memory
        verdict.faults = {kind: self._done[kind] for kind in self._plan.counts if self._done[kind]}
        killed = ("kill", "failover")
        verdict.sigkills = sum(n for kind, n in self._done.items() if kind.startswith(killed))
        recoveries = {name: self._site.recoveries.get(name, []) for name in SERVERS}
        if tasks is not None:
            verdict.tasks = tasks.counts
            recoveries["worker"] = tasks.takeovers
            if not tasks.counts.acknowledged:
                verdict.unproved.append("no task was submitted")
            if not tasks.counts.zombie_writes_refused:
                verdict.unproved.append("no worker wrote after its lease was lost (P3)")
        if self._linked is not None:
            verdict.linked = self._linked.counts
        if memory is not None:
            verdict.memory = memory.counts
            if not memory.counts.acknowledged:
                verdict.unproved.append("no event was recorded")
        verdict.recovery_seconds = {name: Times.of(times) for name, times in recoveries.items()}
        verdict.broken = self._findings.texts()
        verdict.seconds = round(seconds, 1)

    def _summary(self) -> str:
        words = [f"{sum(self._done.values())} of {len(self._plan.faults)} faults"]
        if self._tasks is not None:
            words.append(f"{self._tasks.counts.acknowledged} tasks submitted")
        if self._memory is not None and self._memory.left:
            words.append(f"{self._memory.left} events to go")
        return ", ".join(words)
