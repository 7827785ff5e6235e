"""However a run of a handler ends, its task does not stay behind as if it were at work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import (
    App,
    ChatMessage,
    State,
    TaskContext,
    TaskFailedError,
    TaskRecord,
    TaskRejectedError,
    TaskState,
    Worker,
)
from holdfast.content import DataBlock, TextBlock
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.errors import EngineError, UnavailableError

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONE = "\udc80"


class _MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def _app(function: Callable[[TaskContext], Awaitable[Any]], **how: Any) -> App:
    app = App("writer")
    app.handler(**({"backoff_seconds": 0.001, "max_attempts": 1} | how))(function)
    return app


async def _once(state: State, function: Callable[[TaskContext], Awaitable[Any]]) -> TaskRecord:
    """The task after its only attempt."""
    app = _app(function)
    task = await app.submit(state, "go")
    assert await app.run_until_idle(state) == 1
    return await _now(state, task.id)


async def _now(state: State, task_id: str) -> TaskRecord:
    task = await state.tasks.get(task_id)
    assert task is not None
    return task


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (b"", "what the handler returned: bytes is not JSON"),
        ([TextBlock("a"), 7], "what the handler returned[0]: TextBlock is not JSON"),
        (LONE, "lone surrogate"),
        (ChatMessage.assistant("a", metadata={"a": {1, 2}}), "is not JSON"),
    ],
    ids=["bytes", "list", "surrogate", "metadata"],
)
async def test_a_result_that_is_not_json_is_a_failed_attempt_that_names_the_reason(
    state: State, result: Any, reason: str
) -> None:
    async def work(_task: TaskContext) -> Any:
        return result

    failed = await _once(state, work)
    assert failed.state is TaskState.FAILED
    assert reason in failed.note


async def test_data_and_blocks_are_results_as_they_are_artifacts(state: State) -> None:
    results: list[Any] = [{"a": 1}, DataBlock({"a": 1}), [DataBlock({"a": 1})]]

    async def work(_task: TaskContext) -> Any:
        return results.pop()

    while results:
        done = await _once(state, work)
        assert done.state is TaskState.COMPLETED
        assert done.messages[-1].content == [DataBlock({"a": 1})]


@pytest.mark.parametrize(
    ("error", "wanted", "note"),
    [
        (ValueError(LONE), TaskState.FAILED, "ValueError: \\udc80"),
        (_MuteError(), TaskState.FAILED, "_MuteError"),
        (TaskFailedError(LONE), TaskState.FAILED, "\\udc80"),
        (TaskRejectedError(LONE), TaskState.REJECTED, "\\udc80"),
        (TaskFailedError({"code": 7}), TaskState.FAILED, "{'code': 7}"),  # type: ignore[arg-type]
    ],
    ids=["surrogate", "mute", "failed", "rejected", "no text"],
)
async def test_a_reason_that_cannot_be_stored_as_it_is_ends_the_attempt_all_the_same(
    state: State, error: Exception, wanted: TaskState, note: str
) -> None:
    async def work(_task: TaskContext) -> None:
        raise error

    ended = await _once(state, work)
    assert ended.state is wanted
    assert note in ended.note


async def test_a_report_that_the_ledger_never_takes_is_given_up_and_the_reason_kept(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats go on meanwhile, so that the lease alone would not end it."""
    monkeypatch.setattr(Ledger, "transition", _refusing_answers(Ledger.transition))
    monkeypatch.setattr(Ledger, "complete_many", _refusing)

    async def work(_task: TaskContext) -> str:
        return "done"

    app = _app(work)
    task = await app.submit(state, "go")
    worker = Worker(app, state, tenants=[state.tenant], lease_seconds=0.6)
    async with asyncio.timeout(60):
        await worker.run_until_idle()
    failed = await _now(state, task.id)
    assert failed.state is TaskState.FAILED
    assert "the row is too large" in failed.note


async def test_a_report_is_kept_for_longer_than_the_lease_while_the_ledger_is_away(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0

    def away(real: Any, *, is_report: bool) -> Any:
        async def call(self: Any, *given: Any, **how: Any) -> Any:
            nonlocal refused
            if refused < 8:
                # Eight reports, 0.2 s apart, are more than two leases.
                refused += is_report
                raise UnavailableError("ledger", "no way to it")
            return await real(self, *given, **how)

        return call

    for name in ("transition", "complete_many", "heartbeat"):
        real = getattr(Ledger, name)
        monkeypatch.setattr(Ledger, name, away(real, is_report=name == "complete_many"))

    async def work(_task: TaskContext) -> str:
        return "done"

    app = _app(work)
    task = await app.submit(state, "go")
    worker = Worker(app, state, tenants=[state.tenant], lease_seconds=0.6)
    async with asyncio.timeout(60):
        await worker.run_until_idle()
    assert refused == 8
    assert (await _now(state, task.id)).state is TaskState.COMPLETED


async def test_a_task_of_which_nothing_can_be_reported_is_named_in_the_log(
    state: State, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_given: Any, **_how: Any) -> None:
        raise RuntimeError("a bug of an engine")

    monkeypatch.setattr(Ledger, "transition", broken)
    monkeypatch.setattr(Ledger, "complete_many", broken)

    async def work(_task: TaskContext) -> str:
        return "done"

    left = await _once(state, work)
    assert left.state is TaskState.WORKING
    reply = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert reply == [f"task {left.id}: a bug of an engine"]


class _EndOfAllThings(BaseException):
    pass


@pytest.mark.parametrize("in_a_step", [False, True], ids=["handler", "thread of a step"])
@pytest.mark.parametrize("error", [SystemExit(3), _EndOfAllThings("3")], ids=["exit", "other"])
async def test_a_handler_that_ends_its_process_ends_its_attempt_and_not_the_worker(
    state: State, error: BaseException, *, in_a_step: bool
) -> None:
    def leave() -> None:
        raise error

    async def work(task: TaskContext) -> None:
        if task.message.text == "leave":
            await task.step("leave", leave) if in_a_step else leave()

    app = _app(work)
    left, other = await app.submit(state, "leave"), await app.submit(state, "stay")
    assert await app.run_until_idle(state) == 2
    failed = await _now(state, left.id)
    assert failed.state is TaskState.FAILED
    assert f"the handler raised {type(error).__name__}(3)" in failed.note
    assert (await _now(state, other.id)).state is TaskState.COMPLETED


async def test_what_the_ledger_refuses_of_one_task_does_not_keep_others_from_ending(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end in one request, and the error does not say whose it is."""
    monkeypatch.setattr(Ledger, "complete_many", _refusing)
    transition = Ledger.transition

    async def refuses_bad(self: Any, lease: Any, to: Any, **how: Any) -> Any:
        if how.get("result") == "bad":
            raise EngineError("ledger", "the row is too large")
        return await transition(self, lease, to, **how)

    monkeypatch.setattr(Ledger, "transition", refuses_bad)

    async def work(task: TaskContext) -> str:
        return task.message.text

    app = _app(work)
    tasks = [await app.submit(state, text) for text in ("good", "bad", "fine")]
    worker = Worker(app, state, tenants=[state.tenant], lease_seconds=0.6)
    async with asyncio.timeout(60):
        await worker.run_until_idle()
    ended = [await _now(state, task.id) for task in tasks]
    assert [task.result for task in ended] == ["good", None, "fine"]
    assert [str(task.state) for task in ended] == ["completed", "failed", "completed"]


@pytest.mark.parametrize("error", [UnavailableError("l", "lost"), EngineError("l", "of another")])
async def test_a_task_whose_completion_was_stored_ended_though_the_answer_was_lost(
    state: State, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The error may be that of another task of the same request, after this one was stored."""
    complete, lost = Ledger.complete_many, [error]

    async def losing(self: Any, ends: Any) -> Any:
        reached = await complete(self, ends)
        if lost:
            raise lost.pop()
        return reached

    monkeypatch.setattr(Ledger, "complete_many", losing)

    async def work(task: TaskContext) -> str:
        return task.message.text

    app, endings = _app(work), list[tuple[str, TaskState | None]]()
    tasks = [await app.submit(state, text) for text in ("one", "two", "three")]
    worker = Worker(
        app,
        state,
        tenants=[state.tenant],
        watch=lambda ending: endings.append((ending.task_id, ending.state)),
    )
    await worker.run_until_idle()
    assert sorted(endings) == sorted((task.id, TaskState.COMPLETED) for task in tasks)
    assert [(await _now(state, task.id)).result for task in tasks] == ["one", "two", "three"]


async def _refusing(*_given: Any, **_how: Any) -> None:
    raise EngineError("ledger", "the row is too large")


def _refusing_answers(real: Any) -> Any:
    async def transition(self: Any, lease: Any, to: Any, **how: Any) -> Any:
        if to is TaskState.COMPLETED:
            raise EngineError("ledger", "the row is too large")
        return await real(self, lease, to, **how)

    return transition


async def test_a_failed_attempt_is_logged_with_the_line_of_the_handler(
    state: State, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("failing")

    @app.handler(max_attempts=1)
    async def fail(task: TaskContext) -> str:
        await task.step("parse", json.loads, "no JSON")
        return "done"

    await app.submit(state, "go")
    await app.run_until_idle(state)
    line = fail.__code__.co_firstlineno + 2
    [logged] = [one.getMessage() for one in caplog.records if "a failed attempt" in one.msg]
    assert logged.endswith(f"(test_endings.py:{line} in fail)")
