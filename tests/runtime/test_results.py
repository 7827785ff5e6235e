"""What a handler returns is the task's result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import holdfast
from holdfast import App, ChatMessage, State, TaskContext, TaskState, Worker
from holdfast.content import DataBlock, TextBlock, load_result
from holdfast.errors import NotFoundError
from holdfast.runtime.cleanup import clear_context, sweep

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def at_work(app: App, state: State) -> AsyncIterator[None]:
    """A worker of the app that runs meanwhile."""
    worker = Worker(app, state, tenants=[state.tenant])
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def returned(state: State, value: Any) -> holdfast.TaskRecord:
    """The task whose only handler returned this."""
    app = App("returner")

    @app.handler(max_attempts=1)
    async def work(_task: TaskContext) -> Any:
        return value

    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    done = await state.tasks.get(task.id)
    assert done is not None
    return done


async def test_whatever_json_a_handler_returns_is_the_result(state: State) -> None:
    for value in (0, False, 1.5, [], [1, "two", None], {"pages": [1, 2]}, "text", ""):
        done = await returned(state, value)
        assert (done.state, done.result) == (TaskState.COMPLETED, value), done.note
    assert (await returned(state, None)).result is None


async def test_text_and_data_are_the_last_message_as_well(state: State) -> None:
    assert (await returned(state, "done")).messages[-1].text == "done"
    assert (await returned(state, {"pages": 3})).messages[-1].content == [DataBlock({"pages": 3})]
    assert len((await returned(state, [1, 2])).messages) == 1
    said = await returned(state, ChatMessage.assistant("said"))
    assert (said.result, said.messages[-1].text) == ("said", "said")
    blocks = await returned(state, [TextBlock("a"), TextBlock("b")])
    assert blocks.result == blocks.messages[-1].text


async def test_a_value_that_is_not_json_fails_the_attempt_with_its_path(state: State) -> None:
    done = await returned(state, {"pages": [1, {2}]})
    assert (done.state, done.result) == (TaskState.FAILED, None)
    assert "what the handler returned.pages[1]" in done.note


async def test_a_large_result_is_a_blob_for_as_long_as_the_task_is_there(state: State) -> None:
    large = {"text": "x" * 300_000, "n": 1}
    app = App("returner")

    @app.handler(max_attempts=1)
    async def work(_task: TaskContext) -> list[Any]:
        return [large]

    task = await app.submit(state, "go", owner="ana", session_id="c1")
    await app.run_until_idle(state)
    await sweep(state)
    done = await state.tasks.wait(task.id, owner="ana")
    assert done.state is TaskState.COMPLETED, done.note
    assert len(str(done.result)) < 1000
    assert await load_result(state, done) == [large]
    assert await load_result(state.for_owner("ana"), done) == [large]
    [ref] = done.result.values()
    assert (await state.blobs.stat(ref)).pinned
    await clear_context(state, "c1", owner="ana")
    info = await state.blobs.stat(ref)
    assert not info.pinned


async def test_a_client_waits_for_the_result_while_a_worker_runs(state: State) -> None:
    app = App("adder")

    @app.handler
    async def add(task: TaskContext) -> int:
        return sum(map(int, task.message.text.split("+")))

    async with at_work(app, state):
        done = await state.for_owner("ana").tasks.submit_and_wait(
            "adder", ChatMessage.user("1+2"), timeout_seconds=60
        )
    assert (done.result, done.owner) == (3, "ana")
    with pytest.raises(NotFoundError):
        await state.for_owner("ben").tasks.wait(done.id)
