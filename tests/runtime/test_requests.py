"""A cancel and a pause reach a running handler by a notice; the heartbeat is the fallback."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast import State, TaskContext, TaskState, Worker
from holdfast.contracts.tasks.ledger import Ledger
from tests.runtime.test_worker import _app, _is, _until, _working

pytestmark = pytest.mark.asyncio(loop_scope="session")

LEASE_SECONDS = 600
"""So long that the next heartbeat by the clock comes after 200 seconds."""


async def test_a_cancel_reaches_a_running_handler_without_waiting_for_a_heartbeat(
    state: State,
) -> None:
    begun, seen = asyncio.Event(), list[bool]()

    async def work(task: TaskContext) -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append(task.cancelled)

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state, lease_seconds=LEASE_SECONDS):
        await asyncio.wait_for(begun.wait(), 60)
        await state.tasks.cancel(task.id)
        await _until(state, task.id, _is(TaskState.CANCELED))
    assert seen == [True]


async def test_a_cancel_that_comes_before_the_answer_to_the_claim_is_seen(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Ledger.claim

    async def slow(self: Any, *args: Any, **how: Any) -> Any:
        claimed = await claim(self, *args, **how)
        for one in claimed:
            await state.tasks.cancel(one.task.id)
            # Long enough for the notice to arrive first.
            await asyncio.sleep(0.3)
        return claimed

    async def work(_task: TaskContext) -> None:
        await asyncio.sleep(3600)

    app = _app(work)
    task = await app.submit(state, "go")
    monkeypatch.setattr(Ledger, "claim", slow)
    async with _working(app, state, lease_seconds=LEASE_SECONDS):
        await _until(state, task.id, _is(TaskState.CANCELED))


async def test_a_pause_and_its_withdrawal_reach_a_running_handler_at_once(state: State) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        begun.set()
        await go.wait()

    async def work(task: TaskContext) -> None:
        await task.step("first", first)
        await task.step("second", lambda: None)

    async def reply(worker: Worker, *, pause: bool) -> None:
        async with asyncio.timeout(60):
            while any(one.lease.pause_requested is not pause for one in worker._running.values()):
                await asyncio.sleep(0.01)

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state, lease_seconds=LEASE_SECONDS) as worker:
        await asyncio.wait_for(begun.wait(), 60)
        await state.tasks.pause(task.id)
        await reply(worker, pause=True)
        await state.tasks.resume(task.id)
        await reply(worker, pause=False)
        await state.tasks.pause(task.id)
        await reply(worker, pause=True)
        go.set()
        await _until(state, task.id, _is(TaskState.PAUSED))


async def test_new_work_sends_no_heartbeats(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    beats, begun, go = list[str](), asyncio.Event(), asyncio.Event()
    heartbeat = Ledger.heartbeat

    async def counted(self: Any, lease: Any, **how: Any) -> Any:
        beats.append(lease.task_id)
        return await heartbeat(self, lease, **how)

    async def work(task: TaskContext) -> None:
        if task.message.text == "long":
            begun.set()
            await go.wait()

    monkeypatch.setattr(Ledger, "heartbeat", counted)
    app = _app(work)
    await app.submit(state, "long")
    async with _working(app, state, lease_seconds=LEASE_SECONDS):
        await asyncio.wait_for(begun.wait(), 60)
        for _ in range(20):
            task = await app.submit(state, "short")
            await _until(state, task.id, _is(TaskState.COMPLETED))
        go.set()
    # One or two when it began to listen, none for each submit.
    assert len(beats) < 10


async def test_a_request_of_a_state_that_is_closed_at_once_is_sent(
    state: State, database: str
) -> None:
    if state.engines["tasks"] == "inmemory":
        pytest.skip("a state in memory is not shared")
    begun = asyncio.Event()

    async def work(_task: TaskContext) -> None:
        begun.set()
        await asyncio.sleep(3600)

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state, lease_seconds=LEASE_SECONDS):
        await asyncio.wait_for(begun.wait(), 60)
        async with holdfast.open(database, tenant=state.tenant) as other:
            await other.tasks.cancel(task.id)
        await _until(state, task.id, _is(TaskState.CANCELED))
