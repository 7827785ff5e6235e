"""What a handler is promised: steps once, answers, remarks, artifacts, sleeps, failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import (
    App,
    ChatMessage,
    HistoryRetention,
    State,
    TaskContext,
    TaskFailedError,
    TaskRecord,
    TaskRejectedError,
    TaskState,
)
from holdfast.content import TextBlock
from holdfast.errors import ConfigError, InvalidInputError
from holdfast.runtime.cleanup import clear_context, sweep
from holdfast.runtime.offload import LARGE_BYTES

pytestmark = pytest.mark.asyncio(loop_scope="session")


class _CrashError(Exception):
    """What stands for the end of an attempt."""


def _app(function: Callable[[TaskContext], Awaitable[Any]], **how: Any) -> App:
    app = App("writer")
    app.handler(backoff_seconds=0.001, **how)(function)
    return app


async def _done(state: State, app: App, text: str = "go", **how: Any) -> TaskRecord:
    task = await app.submit(state, text, **how)
    return await _until(state, app, task.id, lambda one: one.terminal)


async def _until(
    state: State, app: App, task_id: str, reached: Callable[[TaskRecord], bool]
) -> TaskRecord:
    """Work until the task is where it should be; retries come due after a moment."""
    async with asyncio.timeout(60):
        while True:
            await app.run_until_idle(state)
            task = await state.tasks.get(task_id)
            assert task is not None
            if reached(task):
                return task
            await asyncio.sleep(0.01)


async def test_what_a_handler_returns_is_the_last_message(state: State) -> None:
    async def greet(task: TaskContext) -> str:
        return f"hello {task.message.text}"

    task = await _done(state, _app(greet), "Ana")
    assert task.state is TaskState.COMPLETED
    assert [message.text for message in task.messages] == ["Ana", "hello Ana"]
    assert task.status_message is not None
    assert task.status_message.role == "assistant"


async def test_a_stored_step_never_runs_again(state: State) -> None:
    ran: list[str] = []

    async def fetch(url: str) -> dict[str, str]:
        ran.append(url)
        return {"page": url}

    async def work(task: TaskContext) -> None:
        first = await task.step("fetch", fetch, "a")
        second = await task.step("fetch", fetch, "b")
        if task.attempt == 1 and len(ran) == 2 and "crashed" not in ran:
            ran.append("crashed")
            raise _CrashError
        await task.say(f"{first['page']} {second['page']}")

    task = await _done(state, _app(work))
    assert ran == ["a", "b", "crashed"]
    assert [message.text for message in task.messages] == ["go", "a b"]


async def test_the_first_run_and_a_resumed_one_see_the_same_result(state: State) -> None:
    seen: list[Any] = []

    async def work(task: TaskContext) -> None:
        seen.append(await task.step("number", lambda: {"n": 1.0, "list": [1]}))
        if len(seen) == 1:
            raise _CrashError

    await _done(state, _app(work))
    assert seen[0] == seen[1]
    assert repr(seen[0]) == repr(seen[1])


async def test_a_step_with_other_arguments_on_resume_is_a_conflict(state: State) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await task.step("fetch", lambda number: number, len(runs))
        if len(runs) == 1:
            raise _CrashError

    task = await _done(state, _app(work, max_attempts=2))
    assert task.state is TaskState.FAILED
    assert "with other arguments" in task.note


async def test_a_plain_function_runs_in_a_thread_and_a_result_that_is_no_json_fails(
    state: State,
) -> None:
    async def work(task: TaskContext) -> None:
        await task.step("bad", lambda: {1, 2})

    task = await _done(state, _app(work, max_attempts=1))
    assert task.state is TaskState.FAILED
    assert "is not JSON" in task.note


async def test_a_large_result_is_kept_as_a_blob_and_let_go_at_the_end(state: State) -> None:
    seen: list[int] = []

    async def work(task: TaskContext) -> None:
        text = await task.step("large", lambda: "x" * LARGE_BYTES)
        seen.append(len(text))
        if len(seen) == 1:
            raise _CrashError

    task = await _done(state, _app(work))
    assert seen == [LARGE_BYTES, LARGE_BYTES]
    [step] = await state.tasks.steps(task.id)
    [ref] = step.result.values()
    assert not (await state.blobs.stat(ref)).pinned
    assert await state.tasks.list_cleanup(task.id) == []


async def test_a_question_suspends_the_task_until_any_worker_has_the_answer(state: State) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> str:
        runs.append(1)
        try:
            first = await task.ask("Which chapter?")
            second = await task.ask("Which page?")
        except Exception:  # noqa: BLE001 - a suspension must pass through this
            return "swallowed"
        return f"{first.text} {second.text}"

    app = _app(work)
    task = await app.submit(state, "go")
    for question, answer in (("Which chapter?", "two"), ("Which page?", "seven")):
        await app.run_until_idle(state)
        waiting = await state.tasks.get(task.id)
        assert waiting is not None
        assert waiting.state is TaskState.INPUT_REQUIRED
        assert waiting.status_message is not None
        assert waiting.status_message.text == question
        await state.tasks.respond(task.id, ChatMessage.user(answer))
    await app.run_until_idle(state)
    done = await state.tasks.get(task.id)
    assert done is not None
    assert done.messages[-1].text == "two seven"
    assert len(runs) == 3


async def test_a_question_for_a_credential_is_auth_required(state: State) -> None:
    async def work(task: TaskContext) -> None:
        await task.ask("Your token?", auth=True)

    app = _app(work)
    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    waiting = await state.tasks.get(task.id)
    assert waiting is not None
    assert waiting.state is TaskState.AUTH_REQUIRED


async def test_a_remark_is_said_once_whatever_is_said_later(state: State) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await task.say(f"run {len(runs)}")
        if len(runs) < 3:
            raise _CrashError

    task = await _done(state, _app(work))
    assert [message.text for message in task.messages] == ["go", "run 1"]


async def test_a_resumed_stream_is_never_partial_and_full(state: State) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        async def head() -> None:
            await task.artifact("a.md", "# head\n", append=True)

        runs.append(1)
        await task.step("head", head)
        for number in range(4):
            await task.artifact("a.md", f"{number}\n", append=True)
            if len(runs) == 1 and number == 2:
                raise _CrashError
        await task.artifact("a.md", "end", append=True, last=True)

    task = await _done(state, _app(work))
    [made] = task.artifacts
    assert made.complete
    assert "".join(part.text for part in made.parts if isinstance(part, TextBlock)) == (
        "# head\n0\n1\n2\n3\nend"
    )


async def test_a_large_file_goes_to_the_blob_store_and_lives_as_long_as_its_context(
    state: State,
) -> None:
    data = b"y" * LARGE_BYTES

    async def work(task: TaskContext) -> None:
        await task.artifact("dropped.bin", data)
        await task.artifact("dropped.bin", b"small")
        await task.artifact("kept.bin", data, media_type="application/x-kept")

    task = await _done(state, _app(work))
    kept = next(one for one in task.artifacts if one.id == "kept.bin").parts[0]
    ref = getattr(kept, "blob_ref", None)
    assert ref is not None
    assert (await state.blobs.stat(ref)).pinned
    assert await state.blobs.resolve(ref) == data
    assert await clear_context(state, task.session_id) == 1
    assert not (await state.blobs.stat(ref)).pinned
    assert await clear_context(state, task.session_id) == 0


async def test_a_sleeping_task_is_nobodys_and_wakes_at_the_moment_of_the_first_run(
    state: State,
) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await task.sleep(0.3 if len(runs) == 1 else 3600)

    app = _app(work)
    task = await app.submit(state, "go")
    await app.run_until_idle(state)
    resting = await state.tasks.get(task.id)
    assert resting is not None
    assert (resting.state, resting.attempts) == (TaskState.SUBMITTED, 0)
    assert resting.run_after is not None
    await _until(state, app, task.id, lambda one: one.state is TaskState.COMPLETED)
    assert len(runs) == 2


async def test_a_sleep_until_a_past_moment_is_no_sleep(state: State) -> None:
    async def work(task: TaskContext) -> None:
        await task.sleep_until(datetime.now(UTC) - timedelta(days=1))

    task = await _done(state, _app(work))
    assert task.fence == 1


async def test_a_handler_that_keeps_failing_ends_as_failed_with_its_traceback(
    state: State,
) -> None:
    runs: list[int] = []

    async def work(_task: TaskContext) -> None:
        runs.append(1)
        raise _CrashError("no luck")

    task = await _done(state, _app(work, max_attempts=3))
    assert len(runs) == 3
    assert task.state is TaskState.FAILED
    assert "_CrashError: no luck" in task.note
    assert "gave up after 3 attempts" in task.note


async def test_a_handler_may_refuse_a_task_or_fail_it_for_good(state: State) -> None:
    async def work(task: TaskContext) -> None:
        if task.message.text == "refuse":
            raise TaskRejectedError("not my work")
        raise TaskFailedError("the page is gone")

    app = _app(work)
    refused = await _done(state, app, "refuse")
    assert (refused.state, refused.note) == (TaskState.REJECTED, "not my work")
    assert refused.status_message is not None
    assert refused.status_message.text == "not my work"
    failed = await _done(state, app, "fail")
    assert (failed.state, failed.note, failed.fence) == (TaskState.FAILED, "the page is gone", 1)


async def test_a_handler_that_takes_too_long_is_a_failed_attempt(state: State) -> None:
    async def work(_task: TaskContext) -> None:
        await asyncio.sleep(3600)

    task = await _done(state, _app(work, timeout_seconds=0.05, max_attempts=1))
    assert task.state is TaskState.FAILED
    assert "took longer than its 0.05 seconds" in task.note


async def test_an_idempotency_key_names_the_task_and_the_step(state: State) -> None:
    keys: list[str] = []

    async def work(task: TaskContext) -> None:
        async def pay() -> None:
            keys.append(task.idempotency_key)

        await task.step("pay", pay)
        await task.step("pay", pay)
        with pytest.raises(ConfigError):
            _ = task.idempotency_key

    task = await _done(state, _app(work))
    assert keys == [f"{task.id}:step:pay:1", f"{task.id}:step:pay:2"]


async def test_a_step_inside_of_a_step_is_refused(state: State) -> None:
    async def work(task: TaskContext) -> None:
        async def outer() -> None:
            with pytest.raises(InvalidInputError):
                await task.step("inner", lambda: None)

        await task.step("outer", outer)

    assert (await _done(state, _app(work))).state is TaskState.COMPLETED


async def test_tasks_of_one_context_share_state_and_transcript(state: State) -> None:
    async def work(task: TaskContext) -> str:
        seen = (await task.state.get()).get("count", 0)
        await task.state.update({"count": seen + 1})
        await task.history.append(ChatMessage.assistant(f"note {seen}"))
        return ", ".join(message.text for message in await task.history.messages())

    app = _app(work)
    await _done(state, app, "one", session_id="c1")
    second = await _done(state, app, "two", session_id="c1")
    assert second.messages[-1].text == "one, note 0, one, note 0, two, note 1"
    assert await state.short_term.get_state("c1") == {"count": 2}


@pytest.mark.parametrize("retention", list(HistoryRetention))
async def test_a_transcript_is_kept_as_long_as_its_retention_says(
    state: State, retention: HistoryRetention
) -> None:
    during: list[int] = []

    async def work(task: TaskContext) -> None:
        await task.history.append(ChatMessage.user("note"))
        during.append(len(await task.history.messages()))

    app = _app(work, retention=retention)
    await _done(state, app, session_id="c1")
    kept = await state.history.count_messages(app.agent, session_id="c1")
    # What is said in a task is in its transcript too, where that is kept.
    assert during == [{"permanent": 2, "run": 1, "none": 0}[retention]]
    assert kept == (2 if retention is HistoryRetention.PERMANENT else 0)


async def test_a_run_is_cleared_by_a_sweep_when_its_worker_died_at_the_end(state: State) -> None:
    """The mark is there before the first message, and whoever finds it finishes."""
    app = App("writer", retention=HistoryRetention.RUN)

    @app.handler
    async def work(task: TaskContext) -> None:
        await task.history.append(ChatMessage.user("note"))
        await task.ask("Go on?")

    task = await app.submit(state, "go", session_id="c1")
    await app.run_until_idle(state)
    assert await sweep(state) == 0
    assert await state.history.count_messages(app.agent, session_id="c1") == 1
    await state.tasks.cancel(task.id)
    assert await sweep(state) == 1
    assert await state.history.count_messages(app.agent, session_id="c1") == 0
    assert await sweep(state) == 0
