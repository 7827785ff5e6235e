"""``task.reply`` comes before anything else, and what it says is in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast import App, ChatMessage, Reply, State, TaskContext, TaskRecord, TaskState
from holdfast.content import DataBlock

pytestmark = pytest.mark.asyncio(loop_scope="session")
Act = Callable[[TaskContext], Awaitable[object]]


async def _ended(app: App, state: State) -> TaskRecord:
    task = await app.submit(state, "ping", session_id="c1")
    async with asyncio.timeout(60):
        while not task.terminal:
            await app.run_until_idle(state)
            task = await state.tasks.get(task.id) or task
    return task


async def test_a_reply_completes_the_task_with_its_message(state: State) -> None:
    app = App("chat")

    @app.handler
    async def chat(task: TaskContext) -> Reply:
        return task.reply({"pong": task.message.text})

    found = await _ended(app, state)
    assert found.state is TaskState.COMPLETED
    assert found.status_message is not None
    assert found.status_message.content == [DataBlock({"pong": "ping"})]
    # The transcript of the context has it, as it has whatever a task says.
    said = await state.history.get_messages(app.agent, session_id="c1")
    for messages in (found.messages, said):
        assert [one.role for one in messages] == ["user", "assistant"]


async def _step(task: TaskContext) -> None:
    await task.step("one", lambda: 1)


async def _say(task: TaskContext) -> None:
    await task.say("one moment")


async def _artifact(task: TaskContext) -> None:
    await task.artifact("a.txt", "a")


async def _sleep(task: TaskContext) -> None:
    await task.sleep(0.001)


async def _fail_after_artifact(task: TaskContext) -> None:
    if task.fence == 1:
        await task.artifact("a.txt", "a")
        raise RuntimeError("the first attempt")


async def _fail_after_say(task: TaskContext) -> None:
    if task.fence == 1:
        await task.say("one moment")
        raise RuntimeError("the first attempt")


async def _fail_after_step(task: TaskContext) -> None:
    if task.fence == 1:
        await task.step("one", lambda: 1)
        raise RuntimeError("the first attempt")


@pytest.mark.parametrize(
    "act",
    [_step, _say, _artifact, _sleep, _fail_after_artifact, _fail_after_say, _fail_after_step],
)
@pytest.mark.parametrize("early", [False, True])
async def test_a_reply_after_anything_else_is_refused(state: State, act: Act, early: bool) -> None:
    app = App("chat")

    @app.handler(max_attempts=2, backoff_seconds=0.001)
    async def chat(task: TaskContext) -> Reply:
        if early:
            reply = Reply(ChatMessage.assistant("too early"))
            await act(task)
            return reply
        await act(task)
        return task.reply("too late")

    found = await _ended(app, state)
    assert found.state is TaskState.FAILED
    assert "task.reply() is for a handler that has done nothing else" in found.note
