"""The tasks of a run: submits them during the faults, then checks their invariants."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from holdfast.chaos.task_worker import JOURNAL, STEPS, ZOMBIE, expected_artifact
from holdfast.chaos.verdict import Findings, TaskCounts
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import EngineError
from holdfast.values.lifecycle import TERMINAL, Actor, TaskState, is_legal
from holdfast.values.tasks.events import ArtifactChunk, TaskEvent, Transition
from holdfast.values.tasks.records import TaskRecord
from holdfast.wiring.state import State

CONTEXT_SIZE = 3
"""Number of tasks that share a context."""

MAX_ATTEMPTS = 50
_GHOSTS = {"refused", "lost", "unanswered"}


class TaskWork:
    """The tasks of a run: submits them, waits for their end, and checks the results.

    ``submit_next`` submits the last ``reserve`` tasks. ``deaths`` has the time at which a worker
    was killed, by its pid. ::

        work = TaskWork(state, 40, folder, findings)
        await work.submit(over_seconds=30)
        await work.done()
        await work.check(deaths)
    """

    def __init__(
        self, state: State, tasks: int, folder: Path, findings: Findings, *, reserve: int = 0
    ) -> None:
        self._state = state
        self._tasks = tasks
        self._due = tasks - reserve
        self._contexts = math.ceil(tasks / CONTEXT_SIZE)
        self._journal = folder / JOURNAL
        self._journal.touch()
        self._findings = findings
        self.counts = TaskCounts()
        self.left = tasks
        """How many tasks were not completed at the last check."""
        self.takeovers: list[float] = []
        """Seconds from the death of a worker until another had claimed its task (I8)."""

    async def submit(self, *, over_seconds: float) -> None:
        """Submit tasks one by one, some at once, most later. Each is retried until acknowledged."""
        at_once = self._contexts
        for number in range(self._due):
            if number >= at_once:
                await asyncio.sleep(over_seconds / (self._due - at_once))
            await self._submit(number)

    async def submit_next(self) -> bool:
        """Submit the next task of the reserve. Returns ``False`` if there is none."""
        if self._due == self._tasks:
            return False
        self._due += 1
        await self._submit(self._due - 1)
        return True

    async def holders(self) -> set[str] | None:
        """Return the pids of workers that hold a task; ``None`` if the ledger does not answer."""
        try:
            page = await self._state.tasks.list(states=[TaskState.WORKING], limit=self._tasks)
        except EngineError:
            return None
        return {_pid(task.worker) for task in page.tasks}

    def ghosts(self, pid: int) -> int:
        """Return how many journal lines a worker has written after it lost a lease."""
        lines = self._journal.read_text().splitlines()
        said = [line.split(" ")[:2] for line in lines]
        return sum(who == str(pid) and what in _GHOSTS for who, what in said)

    @property
    def zombie_refused(self) -> bool:
        """Return whether the ledger has refused a write of a worker that had lost its lease."""
        return any(map(_is_refusal, self._journal.read_text().splitlines()))

    async def all_done(self) -> bool:
        """Return whether every task outside the reserve was submitted and has ended."""
        if self.counts.acknowledged < self._due:
            return False
        live = [one for one in TaskState if one not in TERMINAL]
        try:
            page = await self._state.tasks.list(states=live, limit=1)
        except EngineError:
            return False
        return not page.tasks

    async def done(self) -> None:
        """Wait until all tasks are completed."""
        open_states = [one for one in TaskState if one is not TaskState.COMPLETED]
        while self.left:
            try:
                page = await self._state.tasks.list(states=open_states, limit=1, count=True)
            except EngineError:
                await asyncio.sleep(0.2)
                continue
            self.left = page.total or 0
            if any(task.state is TaskState.FAILED for task in page.tasks):
                # A task ended otherwise and will not be completed: the check reports why.
                return
            await asyncio.sleep(0.2)

    async def check(self, deaths: Mapping[str, datetime]) -> None:
        """Read everything back, and record violated invariants."""
        counts, found = self.counts, self._findings
        try:
            await check_invariants(self._state.tasks, submitted=counts.acknowledged)
        except AssertionError as broken:
            name, _, what = str(broken).partition(": ")
            found.add(name, what)
        tasks = await self._all()
        keys = Counter(task.submit_key for task in tasks)
        counts.lost = counts.acknowledged - len(keys)
        counts.duplicated = sum(keys.values()) - len(keys)
        for task in tasks:
            await self._check_task(task, deaths)
        await self._check_contexts()
        self._read_journal()

    async def _submit(self, number: int) -> None:
        message = ChatMessage.user(str(number))
        while True:
            try:
                await self._state.tasks.submit(
                    "chaos",
                    message,
                    session_id=f"c{number % self._contexts}",
                    submit_key=f"k{number}",
                    max_attempts=MAX_ATTEMPTS,
                )
            except EngineError:
                # The task may have been submitted or not: the submit key makes the retry safe.
                self.counts.submit_retries += 1
                await asyncio.sleep(0.05)
            else:
                self.counts.acknowledged += 1
                return

    async def _all(self) -> list[TaskRecord]:
        tasks, cursor = list[TaskRecord](), None
        while True:
            page = await self._state.tasks.list(
                limit=100, cursor=cursor, messages_limit=None, artifacts=True
            )
            tasks += page.tasks
            cursor = page.next_cursor
            if cursor is None:
                return tasks

    async def _check_task(self, task: TaskRecord, deaths: Mapping[str, datetime]) -> None:
        counts, found = self.counts, self._findings
        counts.completed += task.state is TaskState.COMPLETED
        counts.claims += task.fence
        if task.state is not TaskState.COMPLETED:
            found.add("I1", f"{task.id} is {task.state}: {task.note}")
        else:
            self._check_made(task)
        steps = [step for step in await self._state.tasks.steps(task.id) if step.key.kind == "step"]
        counts.steps_stored += len(steps)
        counts.duplicated += len(steps) - len({step.key for step in steps})
        if task.state is TaskState.COMPLETED and len(steps) != STEPS + 1:
            found.add("I5", f"{task.id} has {len(steps)} steps of {STEPS + 1}")
        events = await self._state.tasks.events(task.id)
        self._check_edges(task, events)
        self._check_zombies(task, events)
        self.takeovers += takeovers_of(events, deaths)

    def _check_made(self, task: TaskRecord) -> None:
        number = int(task.messages[0].text)
        made = [
            "".join(part.text for part in artifact.parts if isinstance(part, TextBlock))
            for artifact in task.artifacts
        ]
        if made != [expected_artifact(number)]:
            self._findings.add("I11", f"{task.id} made {made!r}")
        said = [message.text for message in task.messages]
        if said != [str(number), f"counted {number}"]:
            self._findings.add("I10", f"{task.id} said {said}")

    def _check_edges(self, task: TaskRecord, events: list[TaskEvent]) -> None:
        for event in events:
            move = event.body
            if isinstance(move, Transition) and not is_legal(
                move.from_state, move.to_state, move.by
            ):
                self.counts.illegal_transitions += 1
                edge = f"from {move.from_state} to {move.to_state} by {move.by}"
                self._findings.add("P4", f"{task.id} went {edge}")

    def _check_zombies(self, task: TaskRecord, events: list[TaskEvent]) -> None:
        for event in events:
            if isinstance(event.body, ArtifactChunk):
                text = "".join(one.text for one in event.body.parts if isinstance(one, TextBlock))
                if text.startswith(ZOMBIE) and int(text.rpartition(" ")[2]) != event.fence:
                    self.counts.zombie_writes_accepted += 1
                    self._findings.add("P3", f"{task.id}: {text!r}, and it is {event.fence}")

    async def _check_contexts(self) -> None:
        for at in range(self._contexts):
            name, numbers = f"c{at}", range(at, self._tasks, self._contexts)
            context = await self._state.tasks.get_context(name)
            if context is None:
                self._findings.add("I10", f"context {name} is gone")
                continue
            said = Counter(message.text for message in context.messages)
            asked = [message.text for message in context.messages if message.role == "user"]
            twice = [text for text, count in said.items() if count > 1]
            if twice or asked != [str(number) for number in numbers]:
                self._findings.add("I10", f"context {name}: asked {asked}, twice {twice}")

    def _read_journal(self) -> None:
        counts = self.counts
        for line in self._journal.read_text().splitlines():
            what = line.split(" ")[1]
            if what == "ran":
                counts.steps_run += 1
            counts.leases_lost += what == "lost"
            counts.zombie_writes_refused += _is_refusal(line)


def _is_refusal(line: str) -> bool:
    """Return whether a journal line records a refused write, of any worker."""
    _, what, *rest = line.split(" ")
    return what == "refused" or (what == "lost" and "refused:" in rest)


def takeovers_of(events: Sequence[TaskEvent], deaths: Mapping[str, datetime]) -> list[float]:
    """Return the seconds from each death of a worker to the next claim of its task.

    A worker that was frozen loses its lease while it lives, and may be killed later: such a claim
    is not counted. ::

        takeovers_of(await state.tasks.events("t1"), {"4711": died_at})
    """
    found: list[float] = []
    died = None
    for event in events:
        move = event.body
        if not isinstance(move, Transition):
            continue
        if move.by is Actor.RECOVERY:
            died = deaths.get(_pid(move.worker))
            if died is not None and died > event.at:
                died = None
        elif died is not None and move.to_state is TaskState.WORKING:
            found.append((event.at - died).total_seconds())
            died = None
    return found


def _pid(worker: str) -> str:
    """Return the pid in a worker's name."""
    return worker.rpartition("-")[2]
