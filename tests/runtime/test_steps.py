"""What a step takes, and what it refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import App, State, TaskContext, TaskState
from holdfast.errors import InvalidInputError
from holdfast.values.tasks.events import StepRecord
from holdfast.values.tasks.records import TaskRecord

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_step_that_is_given_a_coroutine_is_refused_at_once(state: State) -> None:
    async def fetch() -> int:
        return 1

    app = App("stepper")

    @app.handler
    async def work(task: TaskContext) -> None:
        given: Any = fetch()
        with pytest.raises(InvalidInputError, match=r"^function: must be f, not its coroutine"):
            await task.step("fetch", given)
        result: Any = 1
        with pytest.raises(
            InvalidInputError, match=r"^function: must be a function that the step 'fetch'"
        ):
            await task.step("fetch", result)

        async def asks() -> None:
            await task.ask("Which?")

        with pytest.raises(InvalidInputError, match="an ask cannot be inside a step"):
            await task.step("asks", asks)

    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    done = await state.tasks.get(task.id)
    assert done is not None
    assert done.state is TaskState.COMPLETED, done.note


async def ran(app: App, state: State, *, runs: int = 10) -> TaskRecord:
    """A task of the app after it has ended, within so many rounds."""
    task: TaskRecord | None = await app.submit(state, "go")
    for _ in range(runs):
        await app.run_until_idle(state)
        assert task is not None
        task = await state.tasks.get(task.id)
        assert task is not None
        if task.terminal:
            return task
    raise AssertionError(task)


async def test_a_step_is_retried_inside_the_attempt_and_each_failed_try_is_in_the_timeline(
    state: State,
) -> None:
    app, calls, attempts = App("stepper"), [0], list[int]()

    @app.handler
    async def work(task: TaskContext) -> str:
        attempts.append(task.attempt)

        def flaky() -> str:
            calls[0] += 1
            if calls[0] < 3:
                raise ConnectionError(f"no route {calls[0]}")
            return "there"

        return str(await task.step("fetch", flaky, retries=3, backoff_seconds=0.001))

    done = await ran(app, state)
    assert (done.state, calls[0], attempts) == (TaskState.COMPLETED, 3, [1])
    steps = await state.tasks.steps(done.id)
    assert [str(step.key) for step in steps] == ["try:fetch:1", "try:fetch:2", "step:fetch:1"]
    assert [step.result for step in steps[:2]] == [
        {
            "step": "step:fetch:1",
            "try": number,
            "error": f"ConnectionError: no route {number}",
            "retry_in_seconds": pause,
        }
        for number, pause in ((1, 0.001), (2, 0.002))
    ]
    for step in steps:
        assert step.started_at is not None
        assert step.started_at <= step.stored_at
    timeline = [event.body for event in await state.tasks.events(done.id)]
    assert [one for one in timeline if isinstance(one, StepRecord)] == steps


async def test_a_step_that_fails_in_every_try_is_a_failed_attempt_and_no_progress(
    state: State,
) -> None:
    app, calls = App("stepper"), list[int]()

    @app.handler(max_attempts=2, backoff_seconds=0.001)
    async def work(task: TaskContext) -> None:
        async def never() -> None:
            calls.append(task.attempt)
            raise ConnectionError("no route")

        await task.step("fetch", never, retries=1, backoff_seconds=0.001)

    done = await ran(app, state)
    assert (done.state, calls) == (TaskState.FAILED, [1, 1, 2, 2])
    assert "gave up after 2 attempts" in done.note
    steps = await state.tasks.steps(done.id)
    assert [str(step.key) for step in steps] == [f"try:fetch:{at}" for at in (1, 2, 3, 4)]
    assert [step.result["try"] for step in steps] == [1, 2, 1, 2]


async def test_a_try_that_takes_too_long_fails_and_is_tried_again(state: State) -> None:
    app, calls = App("stepper"), [0]

    @app.handler
    async def work(task: TaskContext) -> str:
        async def slow() -> str:
            calls[0] += 1
            if calls[0] == 1:
                await asyncio.Event().wait()
            return "fast"

        how: dict[str, Any] = {"retries": 1, "backoff_seconds": 0.001, "timeout_seconds": 0.01}
        # The second try ends as soon as it is scheduled.
        return str(await task.step("fetch", slow, **how))

    done = await ran(app, state)
    assert (done.state, calls[0]) == (TaskState.COMPLETED, 2), done.note
    [failed, _] = await state.tasks.steps(done.id)
    assert failed.result["error"].startswith("TimeoutError")


async def test_wrong_options_of_a_step_are_refused_before_it_runs(state: State) -> None:
    app = App("stepper")

    @app.handler
    async def work(task: TaskContext) -> None:
        for wrong in (
            {"retries": -1},
            {"retries": "2"},
            {"backoff_seconds": 0},
            {"timeout_seconds": -1.0},
        ):
            [field] = wrong
            options: dict[str, Any] = wrong
            with pytest.raises(InvalidInputError, match=field):
                await task.step("fetch", pytest.fail, **options)

    done = await ran(app, state)
    assert done.state is TaskState.COMPLETED, done.note
    assert await state.tasks.steps(done.id) == []


async def test_the_keys_of_gathered_steps_follow_the_arguments_and_not_which_ends_first(
    state: State,
) -> None:
    app, ran_steps = App("stepper"), list[str]()

    @app.handler(backoff_seconds=0.001)
    async def work(task: TaskContext) -> dict[str, Any]:
        second_done = asyncio.Event()

        async def first(name: str) -> str:
            await second_done.wait()
            ran_steps.append(name)
            return name

        async def second(name: str) -> str:
            ran_steps.append(name)
            second_done.set()
            return name

        async def branch() -> list[Any]:
            one = await task.step("fetch", second, "two")
            return [one, *await task.gather(task.step("fetch", second, "three"))]

        found = await task.gather(task.step("fetch", first, "one"), branch())
        if not crashed:
            crashed.append(True)
            raise ConnectionError("after all of them")
        return {"found": found}

    crashed = list[bool]()
    done = await ran(app, state)
    assert done.state is TaskState.COMPLETED, done.note
    # Each ran once, although the handler ran twice.
    assert sorted(ran_steps) == ["one", "three", "two"]
    keys = {str(step.key): step.result for step in await state.tasks.steps(done.id)}
    assert keys == {
        "step:fetch@1.1:1": "one",
        "step:fetch@1.2:1": "two",
        "step:fetch@1.2/1.1:1": "three",
    }


async def test_gather_lets_the_others_end_and_raises_the_first_error_of_the_arguments(
    state: State,
) -> None:
    app = App("stepper")

    @app.handler(max_attempts=1)
    async def work(task: TaskContext) -> None:
        async def fails(text: str) -> None:
            raise ValueError(text)

        async def works() -> int:
            await asyncio.sleep(0)
            return 1

        with pytest.raises(ValueError, match="first"):
            await task.gather(
                task.step("a", works), task.step("b", fails, "first"), task.step("c", fails, "last")
            )
        assert await task.gather() == []
        wrong: Any = task.step
        with pytest.raises(InvalidInputError, match=r"calls\[1\]: must be a call without await"):
            await task.gather(task.step("d", works), wrong)
        with pytest.raises(InvalidInputError, match=r"cannot be inside task\.gather"):
            await task.gather(task.sleep(1))

        async def inside() -> None:
            await task.gather(task.step("f", works))

        with pytest.raises(InvalidInputError, match="cannot be inside a step"):
            await task.step("e", inside)

    done = await ran(app, state)
    assert done.state is TaskState.COMPLETED, done.note
    # The handler went on, so the timeline has the last failure of each.
    steps = await state.tasks.steps(done.id)
    assert [str(one.key) for one in steps if one.key.kind != "try"] == ["step:a@1.1:1"]
