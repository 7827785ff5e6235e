"""How many attempts a task has: the smaller of its own number and its handler's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import App, ChatMessage, HistoryRetention, State, TaskContext, TaskRecord, TaskState
from holdfast.errors import InvalidInputError

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _app(function: Callable[[TaskContext], Awaitable[Any]], **how: Any) -> App:
    app = App("writer")
    app.handler(**({"backoff_seconds": 0.001} | how))(function)
    return app


async def _ended(state: State, app: App, task_id: str) -> TaskRecord:
    async with asyncio.timeout(60):
        while True:
            await app.run_until_idle(state)
            task = await state.tasks.get(task_id)
            assert task is not None
            if task.terminal:
                return task
            await asyncio.sleep(0.01)


async def _die(state: State, *, times: int) -> None:
    """Claim the only task and be gone, so often."""
    for number in range(times):
        [_] = await state.tasks.claim(f"dead-{number}", lease_seconds=0.05)
        async with asyncio.timeout(60):
            while not await state.tasks.recover_expired():
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("handlers", "tasks", "wanted"),
    [(1, 5, 1), (2, 5, 2), (5, 2, 2), (None, 2, 2), (None, 6, 6)],
)
async def test_the_smaller_number_counts_when_an_attempt_fails(
    state: State, handlers: int | None, tasks: int, wanted: int
) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(task.attempt)
        raise ValueError("no luck")

    app = _app(work, max_attempts=handlers)
    task = await state.tasks.submit("writer", ChatMessage.user("go"), max_attempts=tasks)
    failed = await _ended(state, app, task.id)
    assert failed.state is TaskState.FAILED
    assert runs == list(range(1, wanted + 1))
    assert failed.note.startswith(f"gave up after {wanted} attempts without progress: ")
    assert "ValueError: no luck" in failed.note


async def test_progress_sets_the_attempts_back_by_the_handlers_number_too(state: State) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(1)
        for run in range(1, min(len(runs), 3) + 1):
            await task.step(f"run {run}", lambda: 1)
        raise ValueError("no luck")

    app = _app(work, max_attempts=1)
    task = await state.tasks.submit("writer", ChatMessage.user("go"))
    failed = await _ended(state, app, task.id)
    assert failed.state is TaskState.FAILED
    assert len(runs) == 4


async def test_a_task_that_died_as_often_as_its_handler_allows_is_not_run_again(
    state: State,
) -> None:
    runs: list[int] = []

    async def work(_task: TaskContext) -> None:
        runs.append(1)

    app = _app(work, max_attempts=2)
    task = await state.tasks.submit("writer", ChatMessage.user("go"))
    await _die(state, times=2)
    failed = await _ended(state, app, task.id)
    assert failed.state is TaskState.FAILED
    assert failed.note.startswith("gave up after 2 attempts without progress: its handler allows")
    assert runs == []


async def test_a_task_that_died_less_often_than_its_handler_allows_is_run(state: State) -> None:
    async def work(task: TaskContext) -> str:
        return f"attempt {task.attempt}"

    app = _app(work, max_attempts=2)
    task = await state.tasks.submit("writer", ChatMessage.user("go"))
    await _die(state, times=1)
    done = await _ended(state, app, task.id)
    assert done.messages[-1].text == "attempt 2"


async def test_what_a_task_left_is_tidied_up_when_it_is_not_run_again(state: State) -> None:
    async def work(task: TaskContext) -> None:
        await task.history.append(ChatMessage.user("note"))
        raise ValueError("no luck")

    # It waits for so long that the run that is to fail first is the only one.
    first = _app(work, max_attempts=2, backoff_seconds=1, retention=HistoryRetention.RUN)
    task = await state.tasks.submit("writer", ChatMessage.user("go"), session_id="c1")
    await first.run_until_idle(state)
    # The new code, which is rolled out now, allows one attempt.
    later = _app(work, max_attempts=1, retention=HistoryRetention.RUN)
    failed = await _ended(state, later, task.id)
    assert "gave up after 1 attempts" in failed.note
    assert await state.tasks.list_cleanup(task.id) == []
    assert await state.history.count_messages(first.agent, session_id="c1") == 0


async def test_a_handler_that_names_a_number_gives_it_to_what_the_app_submits(
    state: State,
) -> None:
    async def work(_task: TaskContext) -> None: ...

    assert (await _app(work, max_attempts=9).submit(state, "go")).max_attempts == 9
    assert (await _app(work).submit(state, "go")).max_attempts == 5


async def test_a_handler_without_attempts_is_refused() -> None:
    async def work(_task: TaskContext) -> None: ...

    with pytest.raises(InvalidInputError, match="max_attempts: must be 1 or more"):
        _app(work, max_attempts=0)
