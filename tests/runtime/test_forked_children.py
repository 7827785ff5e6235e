"""Forks and resumed tasks whose parents had children."""

from __future__ import annotations

import pytest

from holdfast import App, State, TaskContext, TaskState
from tests.runtime.test_inbox import stored

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_resumed_task_uses_completed_children_and_submits_the_others_anew(
    state: State,
) -> None:
    app, runs, broken = App("writer"), list[str](), [True]

    @app.handler
    async def write(task: TaskContext) -> list[str]:
        first = await task.call("reader", "one")
        return [first, await task.call("reader", "two")]

    @app.handler(agent="reader", max_attempts=1)
    async def read(task: TaskContext) -> str:
        runs.append(task.message.text)
        if task.message.text == "two" and broken:
            raise ConnectionError("down")
        return f"read {task.message.text}"

    task = await app.submit(state, "go", owner="ana")
    failed = await stored(state, task)
    while not failed.terminal:
        await app.run_until_idle(state)
        failed = await stored(state, task)
        if failed.attempts and not failed.terminal:
            await state.tasks.cancel(task.id)
    broken.clear()
    fork = await state.tasks.fork(task.id, failed.version, owner="ana")
    while not (await stored(state, fork)).terminal:
        await app.run_until_idle(state)
    done = await stored(state, fork)
    assert (done.state, done.result) == (TaskState.COMPLETED, ["read one", "read two"]), done.note
    assert runs.count("one") == 1
    assert [one.parent_id for one in (await state.tasks.children(fork.id)).tasks] == [fork.id]
