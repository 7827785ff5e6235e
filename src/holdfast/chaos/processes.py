"""Starts, kills, freezes and replaces the processes that do the work of a run."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from holdfast.chaos.job import Job, ready_file, stop_file
from holdfast.chaos.schedule import Fault
from holdfast.chaos.tasks import TaskWork

_OURS = ("HOLDFAST_", "STORAGE_TYPE", "DATABASE_URL", "REDIS_URL", "BLOB_URL")
PATIENCE_SECONDS = 120.0
"""How long a fault waits for a running process: a busy machine starts processes slowly."""

TAKEOVER_SECONDS = 120.0
"""Maximum extra time that a process stays frozen until others have taken its tasks over; and
maximum time that it then has to notice that."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The modules that the processes run; tests pass broken ones.

    >>> Programs().worker
    'holdfast.chaos.task_worker'
    """

    worker: str = "holdfast.chaos.task_worker"
    agent: str = "holdfast.chaos.memory_agent"
    consolidator: str = "holdfast.chaos.memory_consolidator"


@dataclass(eq=False, slots=True)
class _Process:
    role: str
    slot: int
    child: subprocess.Popen[bytes]
    frozen: bool = False
    spared: bool = False
    """Whether no other fault hits it: it must first notice the leases that it lost while frozen."""


class Processes:
    """Keeps the number of processes of each role constant, whatever happens to them.

    With ``configured`` they read the settings of the environment. On servers that the run starts
    they must not: the environment is about other servers. ::

        processes = Processes(job, Programs(), folder, configured=False)
        processes.start("worker", 3)
    """

    def __init__(self, job: Job, programs: Programs, folder: Path, *, configured: bool) -> None:
        self._job = job
        self._programs = programs
        self._folder = folder
        self._processes: list[_Process] = []
        self._finishing = ""
        self._paces: dict[str, float] = {}
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if configured or not name.startswith(_OURS)
        }
        self.deaths: dict[str, datetime] = {}
        """Time at which a process was killed, by its pid."""
        self.ended = 0
        """How many processes ended without being killed, and were replaced."""
        self.tasks: TaskWork | None = None
        """The tasks that the workers run, if there are workers."""

    def start(self, role: str, count: int, *, pace_seconds: float = 0.0) -> None:
        """Start processes of a role."""
        self._paces[role] = pace_seconds
        for slot in range(count):
            self._start(role, slot)

    @property
    def ready(self) -> bool:
        """Return whether all processes are working."""
        return all(self._at_work(one) for one in self._processes)

    async def do(self, fault: Fault) -> None:
        """Kill a process and start a replacement, or freeze a process for a while."""
        chosen = await self._choose(fault)
        if fault.verb == "kill":
            self._kill(chosen)
        else:
            await self._freeze(chosen, fault.lasts_seconds)

    def keep(self) -> None:
        """Replace processes that ended by themselves, as when their stores were down."""
        for one in list(self._processes):
            if one.role != self._finishing and one.child.poll() is not None:
                self.ended += 1
                self._again(one)

    async def finish(self, role: str) -> None:
        """Wait until the processes of a role finish their work; replace one that fails."""
        self._finishing = role
        stop_file(self._folder).touch()
        for one in [one for one in self._processes if one.role == role]:
            while await asyncio.to_thread(one.child.wait) != 0:
                self.ended += 1
                one = self._again(one)  # noqa: PLW2901 - the same slot, another process
            self._processes.remove(one)

    def stop(self) -> None:
        """Stop all processes."""
        for one in self._processes:
            with contextlib.suppress(ProcessLookupError):
                one.child.kill()
            one.child.wait()
        self._processes = []

    def log(self) -> str:
        """Return the last lines of the logs of all processes."""
        path = self._folder / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    async def _choose(self, fault: Fault) -> _Process:
        """Return a working process of the fault's role; on a slow machine, wait for one."""
        limit = time.monotonic() + PATIENCE_SECONDS
        while True:
            holding, over = None, time.monotonic() > limit
            if self.tasks is not None and fault.kind == "freeze worker":
                # A worker without a lease proves nothing when it continues.
                holding = await self.tasks.holders() or set()
                # No worker will hold a lease again.
                over = over or (not holding and await self.tasks.all_done())
            # From here on nothing is awaited, so that no two faults choose the same one.
            there = [one for one in self._processes if one.role == fault.victim]
            there = [one for one in there if not one.spared] or there
            able = [
                one
                for one in there
                if self._at_work(one)
                and not one.spared
                and (holding is None or str(one.child.pid) in holding)
            ]
            if able or over:
                able = able or there
                return able[int(fault.pick * len(able))]
            await asyncio.sleep(0.05)

    async def _freeze(self, chosen: _Process, for_seconds: float) -> None:
        """Freeze a process until others have claimed its tasks, then wait until it notices."""
        chosen.child.send_signal(signal.SIGSTOP)
        chosen.frozen = chosen.spared = True
        tasks = self.tasks if chosen.role == "worker" else None
        before, taken = 0, False
        try:
            held = await tasks.holders() if tasks else None
            await asyncio.sleep(for_seconds)
            if tasks and held and str(chosen.child.pid) in held:
                before = tasks.ghosts(chosen.child.pid)
                taken = await self._taken_over(chosen, tasks)
        finally:
            chosen.child.send_signal(signal.SIGCONT)
            chosen.frozen = False
        limit = time.monotonic() + TAKEOVER_SECONDS
        while tasks and taken and chosen.child.poll() is None and time.monotonic() < limit:
            if tasks.ghosts(chosen.child.pid) > before:
                break
            await asyncio.sleep(0.05)
        chosen.spared = False

    async def _taken_over(self, chosen: _Process, tasks: TaskWork) -> bool:
        """Wait until others have claimed its tasks. ``False`` if none can, or on a timeout."""
        limit = time.monotonic() + TAKEOVER_SECONDS
        while time.monotonic() < limit and self._others_awake(chosen):
            held = await tasks.holders()
            if held is not None and str(chosen.child.pid) not in held:
                return True
            await asyncio.sleep(0.05)
        return False

    def _others_awake(self, chosen: _Process) -> bool:
        """Return whether another process can claim its tasks; one that is starting counts."""
        return any(
            one is not chosen and one.role == chosen.role and not one.frozen
            for one in self._processes
        )

    def _at_work(self, one: _Process) -> bool:
        return ready_file(self._folder, one.child.pid).exists()

    def _kill(self, chosen: _Process) -> None:
        chosen.child.kill()
        chosen.child.wait()
        self.deaths[str(chosen.child.pid)] = datetime.now(UTC)
        self._again(chosen)

    def _again(self, one: _Process) -> _Process:
        self._processes.remove(one)
        return self._start(one.role, one.slot)

    def _start(self, role: str, slot: int) -> _Process:
        module = getattr(self._programs, role)
        with (self._folder / "log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        assert child.stdin is not None, "its standard input is a pipe"
        with contextlib.suppress(BrokenPipeError), child.stdin as stdin:
            job = dataclasses.replace(self._job, slot=slot, pace_seconds=self._paces[role])
            stdin.write(job.to_text().encode())
        started = _Process(role, slot, child)
        self._processes.append(started)
        return started
