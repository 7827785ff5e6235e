"""Handlers whose code changes while their tasks run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import App, ChatMessage, State, TaskContext, TaskRecord, TaskState
from holdfast.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from holdfast.values.tasks.events import Transition
from tests.runtime.test_inbox import stored

pytestmark = pytest.mark.asyncio(loop_scope="session")
Work = Callable[[TaskContext], Awaitable[Any]]


def _app(work: Work, **how: Any) -> App:
    app = App("writer", version=how.pop("app_version", "1"))
    app.handler(backoff_seconds=0.001, max_attempts=2, **how)(work)
    return app


async def _ended(app: App, state: State, task: TaskRecord) -> TaskRecord:
    while not (await stored(state, task)).terminal:
        await app.run_until_idle(state)
    return await stored(state, task)


async def _before(task: TaskContext) -> str:
    await task.step("fetch", lambda: 1)
    await task.step("sum up", lambda: 2)
    await task.ask("Go on?")
    return "done"


async def _other_step(task: TaskContext) -> str:
    await task.step("fetch", lambda: 1)
    await task.step("shorten", lambda: 2)
    await task.ask("Go on?")
    return "done"


async def _fewer_steps(task: TaskContext) -> str:
    await task.step("fetch", lambda: 1)
    return "done"


@pytest.mark.parametrize(
    ("changed", "now"),
    [
        (_other_step, "steps of this run: step:fetch:1, step:shorten:1."),
        (_fewer_steps, "steps of this run: step:fetch:1, the end."),
    ],
)
async def test_a_handler_whose_steps_no_longer_match_fails_and_shows_both_sequences(
    state: State, changed: Work, now: str
) -> None:
    task = await _app(_before).submit(state, "go")
    await _app(_before).run_until_idle(state)
    await state.tasks.respond(task.id, ChatMessage.user("yes"))
    failed = await _ended(_app(changed), state, task)
    assert failed.state is TaskState.FAILED
    assert "did not repeat step:sum up:1, which is stored" in failed.note
    assert "Stored steps: step:fetch:1, step:sum up:1, ask:ask:1;" in failed.note
    assert now in failed.note
    # Nothing of the changed code was stored, so the old code can finish it.
    resumed = await state.tasks.resume_failed(task.id)
    assert (await _ended(_app(_before), state, resumed)).result == "done"


async def test_a_handler_that_caught_a_failure_may_go_another_way_on_its_next_run(
    state: State,
) -> None:
    down = [True]

    def fetch() -> int:
        if down:
            raise ConnectionError("down")
        return 1

    async def work(task: TaskContext) -> str:
        try:
            await task.step("fetch", fetch)
        except ConnectionError:
            await task.step("from the cache", lambda: 2)
            down.clear()
            await task.ask("Is the cache fresh enough?", name="cache")
        await task.ask("Go on?")
        return "done"

    app = _app(work)
    task = await app.submit(state, "go")
    for _ in range(2):
        await app.run_until_idle(state)
        await state.tasks.respond(task.id, ChatMessage.user("yes"))
    assert (await _ended(app, state, task)).result == "done"


async def test_steps_side_by_side_without_gather_are_taken_in_any_order(state: State) -> None:
    runs = list[int]()

    async def work(task: TaskContext) -> str:
        runs.append(1)

        async def slow() -> int:
            if len(runs) == 1:
                await asyncio.Event().wait()
            return 1

        async def both() -> None:
            await asyncio.gather(task.step("slow", slow), task.step("fast", lambda: 2))

        if len(runs) == 1:
            running = asyncio.ensure_future(both())
            while not await state.tasks.steps(task.id):
                await asyncio.sleep(0)
            running.cancel()
            raise ConnectionError("before the slow one has ended")
        await both()
        return "done"

    app = _app(work)
    task = await app.submit(state, "go")
    assert (await _ended(app, state, task)).result == "done"


async def test_a_task_that_began_with_a_version_finishes_where_that_version_is(
    state: State,
) -> None:
    old = _app(_before, version="1")
    task = await old.submit(state, "go")
    await old.run_until_idle(state)
    await state.tasks.respond(task.id, ChatMessage.user("yes"))
    # A worker that has only the new code, or none with a version, leaves it where it is.
    fresh = await _app(_other_step, version="2").submit(state, "new")
    for other in (_app(_other_step, version="2"), _app(_other_step)):
        await other.run_until_idle(state)
        assert (await stored(state, task)).state is TaskState.SUBMITTED
    both = App("writer")
    both.handler(version="1")(_before)
    both.handler(version="2")(_other_step)
    assert both.handler_of("writer").version == "2"
    assert (await _ended(both, state, task)).result == "done"
    await state.tasks.respond(fresh.id, ChatMessage.user("yes"))
    assert (await _ended(both, state, fresh)).result == "done"
    found = [(await stored(state, one)).handler_version for one in (task, fresh)]
    assert found == ["1", "2"]


async def test_the_version_of_the_app_is_stored_with_each_attempt(state: State) -> None:
    task = await _app(_before, app_version="1.0").submit(state, "go")
    await _app(_before, app_version="1.0").run_until_idle(state)
    await state.tasks.respond(task.id, ChatMessage.user("yes"))
    await _app(_before, app_version="1.1").run_until_idle(state)
    events = await state.tasks.events(task.id)
    claims = [
        one.body.app_version
        for one in events
        if isinstance(one.body, Transition) and one.body.to_state is TaskState.WORKING
    ]
    assert claims == ["1.0", "1.1"]


async def test_versions_of_a_handler_are_checked_when_it_is_added() -> None:
    app = App("writer")
    app.handler(version="1")(_before)
    for wrong in ("1", None):
        with pytest.raises(AlreadyExistsError, match="version"):
            app.handler(version=wrong)(_other_step)
    with pytest.raises(InvalidInputError, match="version"):
        app.handler(agent="reader", version="a\nb")(_before)
    with pytest.raises(NotFoundError):
        app.handler_of("reader")
    with pytest.raises(InvalidInputError, match="version"):
        App("writer", version="a\nb")
