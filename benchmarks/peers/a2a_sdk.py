"""a2a-sdk: a task that gets one more message, at three lengths."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.match import Calls, Growth, Line, Peer, Stage
from benchmarks.peers.openai_agents import sqlalchemy_url
from benchmarks.peers.servers import holdfast_on
from holdfast.bench.contest import Call
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.values.content import ChatMessage
from holdfast.values.tasks.records import Lease

LENGTHS = {10: 20, 100: 10, 1000: 2}
"""How many messages a task has, and over how many such tasks the calls go round."""
FLAT = 1.2
"""What a message to the longest task may cost us against one to the shortest."""
_NOTE = (
    "one message to a task of {length:,}, durable on return; theirs has no call that adds a "
    "message, so the task is saved whole, as its own task manager does at each event"
)


def _line(length: int) -> Line:
    # A task of a thousand is dear on one side.
    block, blocks = (20, 30) if length < 1000 else (3, 20)
    return Line(
        f"a message to a task of {length:,}",
        "tasks.append_message",
        "DatabaseTaskStore.save",
        3.0,
        _NOTE.format(length=length),
        block=block,
        blocks=blocks,
    )


class A2aTasks(Peer):
    """``DatabaseTaskStore`` on asyncpg, on an engine with its usual pool.

    The same: a running agent says something, and the task has it when the call returns. Ours also
    refuses it from a worker whose lease is over.
    """

    name = "a2a-sdk DatabaseTaskStore"
    packages: tuple[str, ...] = ("a2a-sdk", "sqlalchemy", "asyncpg", "greenlet")
    install = "a2a-sdk[postgresql]"
    lines = tuple(_line(length) for length in LENGTHS)
    growth = Growth("a message to a task", lines[0], lines[-1], FLAT, min(LENGTHS), max(LENGTHS))

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """Leased tasks of each length."""
        async with holdfast_on(stage.url, "a2a") as state:
            calls = {}
            for line, (length, tasks) in zip(self.lines, LENGTHS.items(), strict=True):
                number = _number(tasks, stage)
                leases = [await _task(state.tasks, stage, length) for _ in range(number)]
                count = line.calls_of(quick=stage.quick) + self.growth.calls_of(quick=stage.quick)
                calls[line.operation] = _append(state.tasks, leases, stage.workload.messages(count))
            yield calls

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs; a task keeps its length, which is to its advantage."""
        from a2a.server.context import ServerCallContext  # noqa: PLC0415 - optional
        from a2a.server.tasks import DatabaseTaskStore  # noqa: PLC0415
        from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415

        engine = create_async_engine(sqlalchemy_url(stage.url))
        try:
            store = DatabaseTaskStore(engine)
            context = ServerCallContext()
            calls = {}
            for line, (length, usual) in zip(self.lines, LENGTHS.items(), strict=True):
                number = _number(usual, stage)
                tasks = [_their_task(f"{length}.{at}", stage, length) for at in range(number)]
                for task in tasks:
                    await store.save(task, context)
                calls[line.operation] = _save(store, context, tasks, _their_messages(stage, 200))
            yield calls
        finally:
            await engine.dispose()


def _number(usual: int, stage: Stage) -> int:
    """Over how many tasks the calls go round; to fill them takes longer than a quick run."""
    return max(1, usual // 4) if stage.quick else usual


async def _task(tasks: TaskLedger, stage: Stage, length: int) -> Lease:
    first, *rest = stage.workload.messages(length)
    await tasks.submit("bench", first)
    [claimed] = await tasks.claim("w1", lease_seconds=3600)
    for message in rest:
        await tasks.append_message(claimed.lease, message)
    return claimed.lease


def _append(tasks: TaskLedger, leases: list[Lease], messages: list[ChatMessage]) -> Call:
    made = iter(messages)
    return lambda n: tasks.append_message(leases[n % len(leases)], next(made))


def _their_messages(stage: Stage, count: int) -> list[Any]:
    from a2a.types import Message, Part, Role  # noqa: PLC0415 - optional

    return [
        Message(
            message_id=f"m{at}",
            role=Role.ROLE_AGENT if one.role == "assistant" else Role.ROLE_USER,
            parts=[Part(text=one.text)],
        )
        for at, one in enumerate(stage.workload.turns(count))
    ]


def _their_task(name: str, stage: Stage, length: int) -> Any:
    from a2a.types import Task, TaskState, TaskStatus  # noqa: PLC0415 - optional

    task = Task(
        id=name,
        context_id=f"c{name}",
        status=TaskStatus(state=TaskState.TASK_STATE_WORKING),
        history=_their_messages(stage, length),
    )
    task.status.timestamp.GetCurrentTime()
    return task


def _save(store: Any, context: Any, tasks: list[Any], messages: list[Any]) -> Call:
    """A call that puts a new message in the place of the last one, and saves."""

    async def call(number: int) -> None:
        task = tasks[number % len(tasks)]
        task.history[-1].CopyFrom(messages[number % len(messages)])
        await store.save(task, context)

    return call
