"""What a step takes, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import App, State, TaskContext, TaskState
from holdfast.errors import InvalidInputError

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_step_that_is_given_a_coroutine_is_refused_at_once(state: State) -> None:
    async def fetch() -> int:
        return 1

    app = App("stepper")

    @app.handler
    async def work(task: TaskContext) -> None:
        given: Any = fetch()
        with pytest.raises(InvalidInputError, match=r"not its coroutine: .* without f\(\)"):
            await task.step("fetch", given)
        result: Any = 1
        with pytest.raises(InvalidInputError, match="must be a function that the step calls"):
            await task.step("fetch", result)

    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    done = await state.tasks.get(task.id)
    assert done is not None
    assert done.state is TaskState.COMPLETED, done.note
