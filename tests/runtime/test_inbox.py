"""A handler that receives messages while it runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import holdfast
from holdfast import App, State, TaskContext, TaskRecord, TaskState
from holdfast.errors import InvalidInputError
from tests.runtime.test_results import at_work

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def stored(state: State, task: TaskRecord) -> TaskRecord:
    """The task as it is now."""
    found = await state.tasks.get(task.id)
    assert found is not None
    return found


async def test_a_handler_waits_for_messages_without_a_worker_and_gets_each_once(
    state: State,
) -> None:
    app, runs = App("counter"), list[int]()

    @app.handler(backoff_seconds=0.001)
    async def count(task: TaskContext) -> list[Any]:
        runs.append(task.attempt)
        first = await task.receive()
        second = await task.receive("orders")
        third = await task.receive("orders")
        if len(runs) == 3:
            raise ConnectionError("after all of them")
        return [first, second, third]

    task = await app.submit(state, "go", owner="ana")
    await app.run_until_idle(state)
    waiting = await stored(state, task)
    assert (waiting.state, waiting.note) == (
        TaskState.SUBMITTED,
        "waits for a message of the topic messages",
    )
    ana = state.for_owner("ana")
    await ana.tasks.send(task.id, "hello", message_id="m1")
    await ana.tasks.send(task.id, "hello", message_id="m1")
    await app.run_until_idle(state)
    for order in ({"n": 1}, {"n": 2}):
        await ana.tasks.send(task.id, order, topic="orders")
    async with at_work(app, state):
        done = await state.tasks.wait(task.id, timeout_seconds=60)
    assert done.result == ["hello", {"n": 1}, {"n": 2}]
    assert len(runs) == 4


async def test_a_receive_that_times_out_returns_none_and_stays_so() -> None:
    clock, app = holdfast.ManualClock(), App("waiter")

    @app.handler
    async def wait(task: TaskContext) -> list[Any]:
        first = await task.receive("news", timeout_seconds=0.001)
        await task.ask("ready?")
        return [first, await task.receive("news", timeout_seconds=3600)]

    async with holdfast.open("memory:", clock=clock) as state:
        task = await app.submit(state, "go")
        await app.run_until_idle(state)
        clock.advance(timedelta(seconds=2).total_seconds())
        await app.run_until_idle(state)
        assert (await stored(state, task)).state is TaskState.INPUT_REQUIRED
        await state.tasks.send(task.id, "late", topic="news")
        await state.tasks.respond(task.id, holdfast.ChatMessage.user("yes"))
        await app.run_until_idle(state)
        assert (await stored(state, task)).result == [None, "late"]


async def test_wrong_arguments_of_receive_are_refused(state: State) -> None:
    app = App("waiter")

    @app.handler
    async def wait(task: TaskContext) -> None:
        with pytest.raises(InvalidInputError, match="topic"):
            await task.receive("")
        with pytest.raises(InvalidInputError, match="timeout_seconds"):
            await task.receive(timeout_seconds=0)
        with pytest.raises(InvalidInputError, match="cannot be inside"):
            await task.gather(task.receive())

    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    assert (await stored(state, task)).state is TaskState.COMPLETED


async def test_a_question_with_options_returns_the_option(state: State) -> None:
    app = App("asker")

    @app.handler
    async def ask(task: TaskContext) -> str:
        return await task.ask("Which day?", options=["Monday", "Tuesday"])

    task = await app.submit(state, "go", owner="ana")
    await app.run_until_idle(state)
    question = (await stored(state, task)).status_message
    assert question is not None
    assert question.metadata == {"options": ["Monday", "Tuesday"]}
    ana = state.for_owner("ana").tasks
    with pytest.raises(InvalidInputError, match="one of 'Monday', 'Tuesday'"):
        await ana.respond(task.id, holdfast.ChatMessage.user("Sunday"))
    assert (await stored(state, task)).state is TaskState.INPUT_REQUIRED
    await ana.respond(task.id, holdfast.ChatMessage.user(" Monday"), by="ana")
    await app.run_until_idle(state)
    assert (await stored(state, task)).result == "Monday"
