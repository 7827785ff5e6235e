"""Tasks with children, messages and a schedule, in a separate tenant, under the same faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from holdfast.chaos.job import note
from holdfast.chaos.verdict import Findings, LinkedCounts
from holdfast.runtime.app import App
from holdfast.runtime.context import TaskContext
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.values.content import ChatMessage
from holdfast.values.errors import EngineError
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.schedules import ScheduleRecord
from holdfast.values.tasks.records import TaskRecord
from holdfast.wiring.state import State

PARENT, CHILD, TICK = "chaos-parent", "chaos-child", "chaos-tick"
CHILDREN, MESSAGES, MAX_ATTEMPTS = 2, 2, 50
SCHEDULE = "every-minute"
MINUTE = timedelta(minutes=1)
T = TypeVar("T")


def linked_tenant(tenant: str) -> str:
    """Return the tenant of the linked tasks of a run.

    >>> linked_tenant("chaos-1")
    'chaos-1-linked'
    """
    return f"{tenant}-linked"


def expected_result(number: int) -> dict[str, Any]:
    """Return the expected result of a parent task; interruptions do not change it.

    >>> expected_result(7)["children"]
    [70, 71]
    """
    return {
        "children": [number * 10 + at for at in range(CHILDREN)],
        "received": [f"message {at} to {number}" for at in range(MESSAGES)],
    }


def add_linked(app: App, journal: Path, pace_seconds: float) -> None:
    """Add the handlers of the linked tasks: parents that wait, children, and scheduled tasks.

    ::

        add_linked(app, journal, pace_seconds=1.0)
    """

    @app.handler(agent=PARENT, max_attempts=50, backoff_seconds=0.05, max_backoff_seconds=0.2)
    async def parent(task: TaskContext) -> dict[str, Any]:
        number = int(task.message.text)
        calls = (task.call(CHILD, str(number * 10 + at)) for at in range(CHILDREN))
        made = await task.gather(*calls)
        received = [await task.receive("go") for _ in range(MESSAGES)]
        return {"children": made, "received": received}

    @app.handler(agent=CHILD, max_attempts=50, backoff_seconds=0.05, max_backoff_seconds=0.2)
    async def child(task: TaskContext) -> int:
        async def run() -> int:
            note(journal, "ran", task.id, 0)
            await asyncio.sleep(pace_seconds)
            return int(task.message.text)

        found: int = await task.step("count", run)
        return found

    @app.handler(agent=TICK, max_attempts=50, backoff_seconds=0.05, max_backoff_seconds=0.2)
    async def tick(task: TaskContext) -> str:
        return str(task.metadata["scheduled_at"])


class LinkedWork:
    """The linked tasks of a run: submits them, sends messages to them, waits, and checks them.

    ::

        work = LinkedWork(state, 60, findings)
        await work.submit(over_seconds=30)
        await work.done()
        await work.check()
    """

    def __init__(self, state: State, parents: int, findings: Findings) -> None:
        self._state = state
        self._parents = parents
        self._findings = findings
        self.counts = LinkedCounts()

    async def submit(self, *, over_seconds: float) -> None:
        """Create the schedule, then submit parents and send messages; retry until acknowledged."""
        await self._until(
            lambda: self._state.schedules.create(
                SCHEDULE, "* * * * *", agent=TICK, message="tick", missed="all", max_attempts=50
            )
        )
        for number in range(self._parents):
            message = ChatMessage.user(str(number))
            task = await self._until(partial(self._submit, number, message))
            self.counts.acknowledged += 1
            for at in range(MESSAGES):
                await self._until(partial(self._send, task.id, number, at))
                self.counts.sent += 1
            await asyncio.sleep(over_seconds / self._parents)

    async def _submit(self, number: int, message: ChatMessage) -> TaskRecord:
        return await self._state.tasks.submit(
            PARENT, message, submit_key=f"k{number}", max_attempts=MAX_ATTEMPTS
        )

    async def _send(self, task_id: str, number: int, at: int) -> str:
        return await self._state.tasks.send(
            task_id, f"message {at} to {number}", topic="go", message_id=f"m{at}"
        )

    async def _until(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call until the ledger answers; every call here is idempotent."""
        while True:
            try:
                return await call()
            except EngineError:
                self.counts.retries += 1
                await asyncio.sleep(0.05)

    async def done(self) -> None:
        """Pause the schedule after a tick has run, and wait until all tasks have ended."""
        while True:
            schedule = await self._until(self._schedule)
            now = datetime.now(UTC)
            ran = schedule.last_run_at
            if ran is not None and now - ran < MINUTE / 2:
                await self._until(lambda: self._state.schedules.pause(SCHEDULE))
                break
            await asyncio.sleep(0.2)
        live = [one for one in TaskState if one not in TERMINAL]
        while True:
            page = await self._until(lambda: self._state.tasks.list(states=live, limit=1))
            if not page.tasks:
                return
            await asyncio.sleep(0.2)

    async def _schedule(self) -> ScheduleRecord:
        found = await self._state.schedules.get(SCHEDULE)
        assert found is not None
        return found

    async def check(self) -> None:
        """Read everything back, and record lost and duplicated tasks and messages."""
        try:
            await check_invariants(self._state.tasks)
        except AssertionError as broken:
            name, _, what = str(broken).partition(": ")
            self._findings.add(name, what)
        tasks = await self._all()
        by_agent = {
            agent: [one for one in tasks if str(one.agent) == agent]
            for agent in (PARENT, CHILD, TICK)
        }
        for task in tasks:
            if task.state is not TaskState.COMPLETED:
                self._findings.add("I1", f"{task.id} of {task.agent} is {task.state}: {task.note}")
        self._check_parents(by_agent[PARENT], by_agent[CHILD])
        await self._check_ticks(by_agent[TICK])

    async def _all(self) -> list[TaskRecord]:
        tasks, cursor = list[TaskRecord](), None
        while True:
            page = await self._state.tasks.list(limit=100, cursor=cursor, messages_limit=None)
            tasks += page.tasks
            cursor = page.next_cursor
            if cursor is None:
                return tasks

    def _check_parents(self, parents: list[TaskRecord], children: list[TaskRecord]) -> None:
        counts, found = self.counts, self._findings
        counts.completed = sum(one.state is TaskState.COMPLETED for one in parents)
        counts.children = len(children)
        if sorted(one.submit_key for one in parents) != sorted(
            f"k{number}" for number in range(counts.acknowledged)
        ):
            found.add("I9", f"{len(parents)} parents of {counts.acknowledged} acknowledged")
        of = Counter(child.parent_id for child in children)
        for task in parents:
            if of[task.id] != CHILDREN:
                found.add("I9", f"{task.id} has {of[task.id]} children of {CHILDREN}")
            wanted = expected_result(int(task.messages[0].text))
            if task.result != wanted:
                found.add("I5", f"{task.id} returned {task.result}, not {wanted}")

    async def _check_ticks(self, ticks: list[TaskRecord]) -> None:
        schedule = await self._schedule()
        assert schedule.last_run_at is not None
        ran = sorted(datetime.fromisoformat(str(one.metadata["scheduled_at"])) for one in ticks)
        first = schedule.created_at.replace(second=0, microsecond=0) + MINUTE
        minutes = (schedule.last_run_at - first) // MINUTE + 1
        wanted = [first + MINUTE * at for at in range(minutes)]
        self.counts.ticks = len(ran)
        if ran != wanted:
            self._findings.add("I9", f"ticks at {ran}, not at {wanted}")
