"""A handler that submits tasks and waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import App, ChatMessage, State, TaskContext, TaskRecord, TaskState
from holdfast.errors import ChildTaskError, InvalidInputError, NotFoundError, TaskRejectedError
from holdfast.runtime.outcome import TaskFailedError
from tests.runtime.test_results import at_work

pytestmark = pytest.mark.asyncio(loop_scope="session")
_TOMORROW = timedelta(days=1)


class Publisher:
    """An app with a parent and two kinds of children, which counts its runs."""

    def __init__(self) -> None:
        self.app = App("publisher")
        self.parents = 0
        self.written: list[str] = []
        self.attempts: list[int] = []

        @self.app.handler(agent="writer", max_attempts=1)
        async def write(task: TaskContext) -> dict[str, Any]:
            text = task.message.text
            self.written.append(text)
            if text == "refused":
                raise TaskRejectedError("not my subject")
            if text == "broken":
                raise TaskFailedError("the ink is out")
            if text == "large":
                return {"text": "x" * 300_000}
            return {"text": text.title(), "owner": task.owner}


async def ended(app: App, state: State, task: TaskRecord) -> TaskRecord:
    """The task after everything that was due has run."""
    await app.run_until_idle(state)
    done = await state.tasks.get(task.id)
    assert done is not None
    assert done.terminal, f"{done.state}: {done.note}"
    return done


async def test_a_call_returns_the_childs_result_and_holds_no_worker_meanwhile(
    state: State,
) -> None:
    own = Publisher()

    @own.app.handler
    async def publish(task: TaskContext) -> list[Any]:
        own.parents += 1
        first = await task.call("writer", "tides")
        second = await task.call("writer", ChatMessage.user("large"), metadata={"n": 1})
        return [first, len(second["text"])]

    task = await own.app.submit(state, "go", owner="ana")
    # One slot: a parent that kept it would wait for ever.
    await own.app.run_until_idle(state, concurrency=1)
    done = await ended(own.app, state, task)
    assert done.result == [{"text": "Tides", "owner": "ana"}, 300_000]
    assert (own.parents, own.written) == (3, ["tides", "large"])
    children = (await state.tasks.children(task.id, owner="ana")).tasks
    assert {one.parent_id for one in children} == {task.id}
    assert len({one.session_id for one in [*children, done]}) == 3
    moves = [event.body for event in await state.tasks.events(task.id)]
    assert "waits for 1 task" in {getattr(one, "note", "") for one in moves}


async def test_a_child_that_did_not_complete_raises_with_its_reason(state: State) -> None:
    own = Publisher()

    @own.app.handler
    async def publish(task: TaskContext) -> list[str]:
        reasons = []
        for text in ("refused", "broken"):
            with pytest.raises(ChildTaskError) as caught:
                await task.call("writer", text)
            error = caught.value
            assert (error.agent, len(error.task_id) > 8) == ("writer", True)
            reasons += [str(error.state), error.why, error.reason.replace(error.task_id, "t")]
        return reasons

    done = await ended(own.app, state, await own.app.submit(state, "go"))
    assert done.result == [
        *("rejected", "not my subject"),
        "the child 't' of the agent writer is rejected: not my subject",
        *("failed", "the ink is out"),
        "the child 't' of the agent writer is failed: the ink is out",
    ]


async def test_a_parent_that_does_not_catch_it_fails_at_once(state: State) -> None:
    own = Publisher()

    @own.app.handler(max_attempts=5)
    async def publish(task: TaskContext) -> None:
        own.attempts.append(task.attempt)
        await task.call("writer", "broken")

    done = await ended(own.app, state, await own.app.submit(state, "go"))
    assert (done.state, own.attempts) == (TaskState.FAILED, [1, 1])
    assert done.note.endswith("is failed: the ink is out")


async def test_gathered_calls_run_side_by_side_and_the_parent_is_resumed_once(
    state: State,
) -> None:
    own = Publisher()

    @own.app.handler
    async def publish(task: TaskContext) -> dict[str, Any]:
        own.parents += 1
        step, *texts = await task.gather(
            task.step("title", lambda: "A book"),
            *(task.call("writer", f"chapter {number}") for number in range(50)),
        )
        return {"title": step, "chapters": [one["text"] for one in texts]}

    done = await ended(own.app, state, await own.app.submit(state, "go"))
    assert done.result == {
        "title": "A book",
        "chapters": [f"Chapter {number}" for number in range(50)],
    }
    assert own.parents == 2
    assert sorted(own.written) == sorted(f"chapter {number}" for number in range(50))


async def test_a_crash_between_submit_and_wait_submits_no_second_child(state: State) -> None:
    own = Publisher()

    @own.app.handler(backoff_seconds=0.001)
    async def publish(task: TaskContext) -> Any:
        own.parents += 1
        child_id = await task.spawn("writer", "tides", name="first")
        if own.parents == 1:
            raise ConnectionError("lost")
        with pytest.raises(NotFoundError, match="has no child"):
            await task.wait(task.id)
        return await task.wait(child_id)

    task = await own.app.submit(state, "go")
    async with at_work(own.app, state):
        done = await state.tasks.wait(task.id, timeout_seconds=60)
    assert done.result == {"text": "Tides", "owner": ""}
    assert own.written == ["tides"]
    assert [str(one.key) for one in await state.tasks.steps(task.id)] == ["child:first:1"]


async def test_other_arguments_on_a_later_run_are_refused(state: State) -> None:
    own = Publisher()

    @own.app.handler(max_attempts=1)
    async def publish(task: TaskContext) -> Any:
        own.parents += 1
        return await task.call("writer", f"run {own.parents}")

    done = await ended(own.app, state, await own.app.submit(state, "go"))
    assert done.state is TaskState.FAILED
    assert "child:writer:1 is stored with other arguments" in done.note


async def test_a_deleted_child_ends_the_wait_with_an_error(state: State) -> None:
    own = Publisher()

    @own.app.handler(max_attempts=1)
    async def publish(task: TaskContext) -> Any:
        return await task.call("writer", "tides", run_after=_TOMORROW, session_id="c1")

    task = await own.app.submit(state, "go")
    await own.app.run_until_idle(state)
    await state.tasks.clear_context("c1")
    done = await ended(own.app, state, task)
    assert done.state is TaskState.FAILED
    assert "has no child" in done.note


async def test_wrong_arguments_of_a_call_are_refused_and_nothing_is_submitted(
    state: State,
) -> None:
    own = Publisher()

    @own.app.handler
    async def publish(task: TaskContext) -> None:
        wrong: dict[str, Any]
        for wrong in (
            {"max_attempts": 0},
            {"session_id": "holdfast.x"},
            {"metadata": {"a": {1}}},
            {"run_after": "tomorrow"},
            {"name": ""},
        ):
            with pytest.raises(InvalidInputError):
                await task.spawn("writer", "tides", **wrong)
        with pytest.raises(InvalidInputError):
            await task.spawn("", "tides")

        async def inside() -> None:
            await task.spawn("writer", "tides")

        with pytest.raises(InvalidInputError, match="cannot be inside a step"):
            await task.step("s", inside)

    done = await ended(own.app, state, await own.app.submit(state, "go"))
    assert done.state is TaskState.COMPLETED, done.note
    assert (await state.tasks.children(done.id)).tasks == []


async def test_a_child_for_an_agent_that_nobody_runs_is_a_warning_once(
    state: State, caplog: pytest.LogCaptureFixture
) -> None:
    own = Publisher()

    @own.app.handler
    async def publish(task: TaskContext) -> None:
        await task.spawn("writer", "tides")
        await task.gather(task.call("writter", "tides"), task.call("writter", "boats"))

    for _ in range(2):
        await own.app.submit(state, "go")
    await own.app.run_until_idle(state)
    [warned] = [one for one in caplog.messages if "the agent writter" in one]
    assert "no handler in this app" in warned
    assert not [one for one in caplog.messages if "the agent writer," in one]


async def test_a_child_that_another_app_runs_is_no_warning(
    state: State, caplog: pytest.LogCaptureFixture
) -> None:
    own, other = Publisher(), App("other")

    @own.app.handler
    async def publish(task: TaskContext) -> None:
        await task.spawn("reader", "tides")

    @other.handler(agent="reader")
    async def read(_task: TaskContext) -> None:
        """Read nothing."""

    await other.submit(state, "go", agent="reader")
    await other.run_until_idle(state)
    await ended(own.app, state, await own.app.submit(state, "go"))
    assert not [one for one in caplog.messages if "reader" in one and "submitted" in one]


async def test_cancel_with_children_stops_all_of_them(state: State) -> None:
    own = Publisher()

    @own.app.handler
    async def publish(task: TaskContext) -> None:
        await task.gather(*(task.call("writer", "x", run_after=_TOMORROW) for _ in range(3)))

    task = await own.app.submit(state, "go")
    await own.app.run_until_idle(state)
    await state.tasks.cancel(task.id, children=True)
    done = await ended(own.app, state, task)
    children = (await state.tasks.children(task.id)).tasks
    assert [one.state for one in [done, *children]] == [TaskState.CANCELED] * 4
