"""Tasks under fire: workers killed and frozen, Postgres killed, then every invariant checked."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.chaos.task_worker import LEASE_SECONDS, STEPS, ZOMBIE, expected_artifact
from holdfast.kernel.core.content import ChatMessage, TextBlock
from holdfast.kernel.core.errors import EngineError
from holdfast.kernel.core.lifecycle import Actor, TaskState
from holdfast.kernel.storage.ledger_events import ArtifactChunk, TaskEvent, Transition
from holdfast.kernel.storage.ledger_records import TaskRecord
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.postgres_server import PostgresServer
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

CONTEXT_SIZE = 4
"""How many tasks share a conversation."""


@dataclass(frozen=True, slots=True)
class TaskFaults:
    """How much work, and what happens to those who do it; the seed fixes the schedule."""

    tasks: int = 40
    workers: int = 4
    kills: int = 12
    stops: int = 8
    server_kills: int = 1
    seed: int = 1
    pace_seconds: float = 0.7
    between_seconds: float = 0.6
    """How long, on average, between two faults."""
    limit_seconds: float = 600

    @classmethod
    def within(cls, seconds: float, *, seed: int = 1) -> TaskFaults:
        """As many faults as fit into so many seconds, and work enough to last as long.

        >>> TaskFaults.within(60).kills
        40
        """
        faults = max(4, round(seconds))
        return cls(
            tasks=max(20, round(seconds * 1.5)),
            kills=round(faults * 0.67),
            stops=round(faults * 0.28),
            server_kills=max(1, round(faults * 0.05)),
            seed=seed,
            between_seconds=seconds / faults * 0.8,
            limit_seconds=seconds * 5 + 120,
        )


@dataclass(slots=True)
class TaskVerdict:
    """What was done to the workers, and what became of the tasks."""

    completed: int = 0
    kills: int = 0
    stops: int = 0
    server_kills: int = 0
    steps_stored: int = 0
    steps_run: int = 0
    zombie_writes_refused: int = 0
    zombie_writes_accepted: int = 0
    leases_lost: int = 0
    claims: int = 0
    server_recovery_seconds: list[float] = field(default_factory=list)
    takeover_seconds: float = 0.0
    """The longest from the death of a worker until its task was back in the queue."""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


class TaskRun:
    """One run: servers and workers of its own, in a folder of its own."""

    def __init__(
        self,
        faults: TaskFaults,
        progress: Callable[[str], None],
        *,
        worker: str = "holdfast.chaos.task_worker",
    ) -> None:
        self._faults = faults
        self._worker = worker
        self._progress = progress
        self._rng = random.Random(faults.seed)  # noqa: S311 - a schedule that can be repeated
        self._workers: list[subprocess.Popen[bytes]] = []
        self._thaws: list[asyncio.Task[None]] = []
        self._deaths: dict[str, datetime] = {}
        self._verdict = TaskVerdict()

    async def run(self) -> TaskVerdict:
        """Submit, torment, wait, check; ``AssertionError`` names the invariant that is broken."""
        begun = time.monotonic()
        self._server = PostgresServer(18)
        self._folder = Path(tempfile.mkdtemp(prefix="hf-chaos-"))
        (self._folder / "journal").touch()
        try:
            self._server.start()
            settings = Settings(auto_migrate=True, max_connections=4)
            async with open_state(self._server.url(), settings=settings) as state:
                await self._submit(state)
                for _ in range(self._faults.workers):
                    self._hire()
                async with asyncio.timeout(self._faults.limit_seconds):
                    await self._torment()
                    await self._all_done(state)
                self._dismiss()
                await self._check(state)
        except BaseException:
            self._progress(f"the logs of the workers are in {self._folder}")
            raise
        else:
            shutil.rmtree(self._folder)
        finally:
            self._dismiss()
            self._server.remove()
        self._verdict.seconds = round(time.monotonic() - begun, 1)
        return self._verdict

    async def _submit(self, state: State) -> None:
        for number in range(self._faults.tasks):
            await state.tasks.submit(
                "chaos",
                ChatMessage.user(str(number)),
                context_id=f"c{number // CONTEXT_SIZE}",
                submit_key=f"k{number}",
                max_attempts=50,
            )

    def _hire(self) -> None:
        command = [sys.executable, "-m", self._worker, self._server.url()]
        command += [str(self._folder), str(self._faults.pace_seconds)]
        with (self._folder / "log").open("ab") as log:
            self._workers.append(
                subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            )

    def _dismiss(self) -> None:
        for thaw in self._thaws:
            thaw.cancel()
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
        self._workers = []

    async def _torment(self) -> None:
        faults = self._faults
        schedule = ["kill"] * faults.kills + ["stop"] * faults.stops
        schedule += ["server"] * faults.server_kills
        self._rng.shuffle(schedule)
        await asyncio.sleep(1.0)
        for at, fault in enumerate(schedule, 1):
            self._progress(f"fault {at} of {len(schedule)}: {fault}")
            await asyncio.sleep(self._rng.uniform(0.2, 1.8) * faults.between_seconds)
            match fault:
                case "kill":
                    await self._kill()
                case "stop":
                    self._freeze()
                case _:
                    await self._kill_server()
        await asyncio.gather(*self._thaws)

    async def _kill(self) -> None:
        victim = self._workers.pop(self._rng.randrange(len(self._workers)))
        victim.kill()
        await asyncio.to_thread(victim.wait)
        self._deaths[str(victim.pid)] = datetime.now(UTC)
        self._verdict.kills += 1
        self._hire()

    def _freeze(self) -> None:
        """Stop a worker for longer than its lease, then let it go on as if nothing was."""
        victim = self._rng.choice(self._workers)
        victim.send_signal(signal.SIGSTOP)
        self._verdict.stops += 1

        async def thaw() -> None:
            await asyncio.sleep(LEASE_SECONDS * 2)
            with contextlib.suppress(ProcessLookupError):
                victim.send_signal(signal.SIGCONT)

        self._thaws.append(asyncio.create_task(thaw()))

    async def _kill_server(self) -> None:
        start = time.monotonic()
        await asyncio.to_thread(self._server.kill)
        await asyncio.to_thread(self._server.start)
        self._verdict.server_kills += 1
        self._verdict.server_recovery_seconds.append(round(time.monotonic() - start, 2))

    async def _all_done(self, state: State) -> None:
        open_states = [one for one in TaskState if one is not TaskState.COMPLETED]
        while True:
            self._keep_staff()
            try:
                page = await state.tasks.list(states=open_states, limit=1, count=True)
            except EngineError:
                await asyncio.sleep(0.2)
                continue
            self._progress(f"{page.total} tasks to go")
            if not page.tasks:
                return
            await asyncio.sleep(0.2)

    def _keep_staff(self) -> None:
        """A worker that ended by itself is replaced: its log tells why."""
        for worker in [one for one in self._workers if one.poll() is not None]:
            self._workers.remove(worker)
            self._hire()

    async def _check(self, state: State) -> None:
        verdict, faults = self._verdict, self._faults
        await check_invariants(state.tasks, submitted=faults.tasks)
        tasks, cursor = list[TaskRecord](), None
        while True:
            page = await state.tasks.list(
                limit=100, cursor=cursor, history_length=None, artifacts=True
            )
            tasks += page.tasks
            cursor = page.next_cursor
            if cursor is None:
                break
        for task in tasks:
            self._check_task(task)
            steps = [step for step in await state.tasks.steps(task.id) if step.key.kind == "step"]
            verdict.steps_stored += len(steps)
            verdict.claims += task.fence
            assert len(steps) == STEPS + 1, f"I5: {task.id} has {len(steps)} steps"
            events = await state.tasks.history(task.id)
            self._time_takeovers(events)
            self._check_zombies(events)
        verdict.completed = len(tasks)
        await self._check_contexts(state)
        self._read_journal()

    def _check_task(self, task: TaskRecord) -> None:
        number = int(task.messages[0].text)
        assert task.state is TaskState.COMPLETED, f"I1: {task.id} is {task.state}: {task.note}"
        [artifact] = task.artifacts
        made = "".join(part.text for part in artifact.parts if isinstance(part, TextBlock))
        assert made == expected_artifact(number), f"I11: {task.id} made {made!r}"
        said = [message.text for message in task.messages]
        assert said == [str(number), f"counted {number}"], f"I10: {task.id} said {said}"

    def _time_takeovers(self, events: list[TaskEvent]) -> None:
        """From the death of a worker until what it held was back in the queue (I8)."""
        for event in events:
            move = event.body
            if isinstance(move, Transition) and move.by is Actor.RECOVERY:
                died = self._deaths.get(move.worker.split("-")[-2])
                if died is not None:
                    seconds = round((event.at - died).total_seconds(), 2)
                    self._verdict.takeover_seconds = max(self._verdict.takeover_seconds, seconds)

    def _check_zombies(self, events: list[TaskEvent]) -> None:
        """No write of an old holder took effect under the claim of a new one (P3)."""
        for event in events:
            if isinstance(event.body, ArtifactChunk):
                text = "".join(one.text for one in event.body.parts if isinstance(one, TextBlock))
                if text.startswith(ZOMBIE) and int(text.rpartition(" ")[2]) != event.fence:
                    self._verdict.zombie_writes_accepted += 1
        assert self._verdict.zombie_writes_accepted == 0, "P3: a write of an old holder counted"

    async def _check_contexts(self, state: State) -> None:
        for at in range(0, self._faults.tasks, CONTEXT_SIZE):
            context = await state.tasks.get_context(f"c{at // CONTEXT_SIZE}")
            assert context is not None, f"I10: context {at // CONTEXT_SIZE} is gone"
            numbers = range(at, min(at + CONTEXT_SIZE, self._faults.tasks))
            said = Counter(message.text for message in context.messages)
            asked = [m.text for m in context.messages if m.role == "user"]
            assert asked == [str(number) for number in numbers], f"I10: {asked}"
            assert all(count == 1 for count in said.values()), f"I10: {said}"

    def _read_journal(self) -> None:
        verdict = self._verdict
        for line in (self._folder / "journal").read_text().splitlines():
            _, what, *rest = line.split(" ")
            if what == "ran":
                verdict.steps_run += 1
            elif what == "lost":
                verdict.leases_lost += 1
                verdict.zombie_writes_refused += "refused:" in rest
            elif what == "refused":
                verdict.zombie_writes_refused += 1
