"""What a handler appends to its transcript is there once, however often the handler runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import App, ChatMessage, HistoryRetention, Reply, State, TaskContext, TaskState
from holdfast.contracts.history import History
from holdfast.values.errors import ConflictError, TimedOutError

pytestmark = pytest.mark.asyncio(loop_scope="session")
Work = Callable[[TaskContext], Awaitable[Any]]


def _app(work: Work, **options: Any) -> App:
    # Only what handlers append: the copies of what is said in tasks are left out.
    app = App("clerk", remember=False, **options)
    app.handler(backoff_seconds=0.001)(work)
    return app


async def _ended(state: State, app: App) -> str:
    """Run a task to its end, and answer whatever it asks; its note."""
    task = await app.submit(state, "go", session_id="c1")
    async with asyncio.timeout(60):
        while not task.terminal:
            await app.run_until_idle(state)
            task = await state.tasks.get(task.id) or task
            if task.state is TaskState.INPUT_REQUIRED:
                task = await state.tasks.respond(task.id, ChatMessage.user("yes"))
    assert task.state is TaskState.COMPLETED, task.note
    return task.id


async def _transcript(state: State, app: App) -> list[ChatMessage]:
    return await state.history.get_messages(app.agent, session_id="c1")


async def _texts(state: State, app: App) -> list[str]:
    return [one.text for one in await _transcript(state, app)]


@pytest.mark.parametrize("retention", [HistoryRetention.PERMANENT, HistoryRetention.RUN])
async def test_a_handler_that_mints_ids_appends_once_although_it_asks(
    state: State, retention: HistoryRetention
) -> None:
    seen: list[list[ChatMessage]] = []

    async def work(task: TaskContext) -> None:
        await task.history.append(ChatMessage.assistant("a"), ChatMessage.assistant("b"))
        seen.append(await task.history.messages())
        await task.ask("Go on?")
        await task.history.append(ChatMessage.assistant("c"))
        seen.append(await task.history.messages())
        await task.ask("Still?")

    app = _app(work, retention=retention)
    await _ended(state, app)
    assert [[one.text for one in found] for found in seen] == [
        *(["a", "b"], ["a", "b"], ["a", "b", "c"]),
        *(["a", "b", "c"], ["a", "b", "c"]),
    ]
    # The first ones stay, with their ids and times.
    assert all(found[:2] == seen[0] for found in seen)
    kept = ["a", "b", "c"] if retention is HistoryRetention.PERMANENT else []
    assert await _texts(state, app) == kept


@pytest.mark.parametrize("written", [False, True])
async def test_an_append_whose_run_dies_before_or_after_it_is_written_is_there_once(
    state: State, monkeypatch: pytest.MonkeyPatch, *, written: bool
) -> None:
    append, died = History.append_many, list[str]()

    async def dies_once(self: History, agent: Any, messages: Any, **scope: Any) -> None:
        if written or died:
            await append(self, agent, messages, **scope)
        if not died:
            died.append(messages[0].id)
            raise TimedOutError("test", "the answer is lost")

    async def work(task: TaskContext) -> None:
        await task.history.append(ChatMessage.assistant("once"))

    monkeypatch.setattr(type(state.for_owner("").history), "append_many", dies_once)
    app = _app(work)
    await _ended(state, app)
    [message] = await _transcript(state, app)
    assert (message.id, message.text) == (died[0], "once")


async def test_an_append_inside_of_a_step_that_fails_is_there_once(state: State) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        async def notes() -> None:
            await task.history.append(ChatMessage.assistant("inside"))
            runs.append(task.attempt)
            if len(runs) == 1:
                raise RuntimeError("the first attempt")

        await task.step("notes", notes)
        # The same text, outside of the step: on the last run the step is not run again.
        await task.history.append(ChatMessage.assistant("inside"))
        await task.ask("Go on?")

    app = _app(work)
    await _ended(state, app)
    assert len(runs) == 2
    assert await _texts(state, app) == ["inside", "inside"]


async def test_equal_messages_of_one_run_stay_two_on_every_run(state: State) -> None:
    async def work(task: TaskContext) -> None:
        await task.history.append(ChatMessage.assistant("yes"))
        await task.history.append(ChatMessage.assistant("yes"))
        await task.ask("Go on?")

    app = _app(work)
    await _ended(state, app)
    assert await _texts(state, app) == ["yes", "yes"]
    await _ended(state, app)
    assert await _texts(state, app) == ["yes"] * 4


async def test_an_append_that_a_later_run_leaves_out_does_not_stand_for_the_next(
    state: State,
) -> None:
    async def work(task: TaskContext) -> None:
        if not await task.history.messages():
            await task.history.append(ChatMessage.system("the rules"))
            raise RuntimeError("the first attempt")
        await task.history.append(ChatMessage.assistant("hello"))
        await task.ask("Go on?")

    app = _app(work)
    await _ended(state, app)
    assert await _texts(state, app) == ["the rules", "hello"]


async def test_another_content_on_a_later_run_is_another_message(state: State) -> None:
    async def work(task: TaskContext) -> None:
        await task.history.append(ChatMessage.assistant(f"run {task.fence}"))
        await task.ask("Go on?")

    app = _app(work)
    await _ended(state, app)
    assert await _texts(state, app) == ["run 1", "run 2"]


async def test_the_ids_of_the_handler_are_kept_and_another_message_under_one_is_a_conflict(
    state: State,
) -> None:
    refused: list[str] = []

    async def work(task: TaskContext) -> None:
        await task.history.append(ChatMessage.assistant("a", id=f"{task.id}:a"))
        try:
            await task.history.append(ChatMessage.assistant("b", id=f"{task.id}:a"))
        except ConflictError as error:
            refused.append(error.key)
        await task.ask("Go on?")

    app = _app(work)
    task_id = await _ended(state, app)
    assert [(one.id, one.text) for one in await _transcript(state, app)] == [(f"{task_id}:a", "a")]
    assert refused == [f"{task_id}:a"] * 2


async def test_a_reply_after_an_append_is_a_reply(state: State) -> None:
    async def work(task: TaskContext) -> Reply:
        await task.history.append(ChatMessage.assistant("noted"))
        if task.fence == 1:
            raise RuntimeError("the first attempt")
        return task.reply("pong")

    app = _app(work)
    await _ended(state, app)
    assert await _texts(state, app) == ["noted"]
