"""What a worker is promised to do: drain, stop what is cancelled, pause, keep leases, take over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast import App, ChatMessage, State, TaskContext, TaskRecord, TaskState, Worker
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.errors import UnavailableError
from holdfast.runtime.runner import Ending
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.values.tasks.records import Lease

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def _working(app: App, state: State, **how: Any) -> AsyncIterator[Worker]:
    options: dict[str, Any] = {
        "tenants": [state.tenant],
        "poll_seconds": 0.05,
        "recovery_seconds": 0.05,
    } | how
    worker = Worker(app, state, **options)
    run = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(60):
            await run


async def _until(state: State, task_id: str, reached: Callable[[TaskRecord], bool]) -> TaskRecord:
    async with asyncio.timeout(60):
        while True:
            task = await state.tasks.get(task_id)
            assert task is not None
            if reached(task):
                return task
            await asyncio.sleep(0.01)


def _is(wanted: TaskState) -> Callable[[TaskRecord], bool]:
    return lambda task: task.state is wanted


def _app(function: Callable[[TaskContext], Awaitable[Any]], **how: Any) -> App:
    app = App("writer")
    app.handler(backoff_seconds=0.001, **how)(function)
    return app


async def test_many_tasks_are_done_once_each(state: State) -> None:
    done: list[str] = []

    async def work(task: TaskContext) -> None:
        done.append(await task.step("note", lambda: task.message.text))

    app = _app(work)
    texts = [f"task {number}" for number in range(40)]
    tasks = [await app.submit(state, text) for text in texts]
    async with _working(app, state, concurrency=7):
        for task in tasks:
            await _until(state, task.id, _is(TaskState.COMPLETED))
    assert sorted(done) == sorted(texts)
    await check_invariants(state.tasks, submitted=40)


async def test_tasks_of_one_context_run_one_at_a_time(state: State) -> None:
    at_once: list[int] = [0, 0]

    async def work(_task: TaskContext) -> None:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(0.01)
        at_once[0] -= 1

    app = _app(work)
    tasks = [await app.submit(state, "go", session_id="c1") for _ in range(6)]
    async with _working(app, state, concurrency=6):
        for task in tasks:
            await _until(state, task.id, _is(TaskState.COMPLETED))
    assert at_once[1] == 1


async def test_a_worker_serves_all_tenants_that_have_work(state: State) -> None:
    async def work(task: TaskContext) -> str:
        return task.tenant

    app = App("serves-all")
    app.handler(work)
    others = [state.for_tenant(f"{state.tenant}-{number}") for number in range(3)]
    tasks = [(other, await app.submit(other, "go")) for other in others]
    async with _working(app, state, tenants=None):
        for other, task in tasks:
            done = await _until(other, task.id, _is(TaskState.COMPLETED))
            assert done.messages[-1].text == other.tenant


async def test_cancel_stops_a_running_handler_at_the_next_heartbeat(state: State) -> None:
    seen: list[str] = []
    begun = asyncio.Event()

    async def work(task: TaskContext) -> None:
        try:
            begun.set()
            await asyncio.sleep(3600)
        finally:
            seen.append(f"stopped, cancelled={task.cancelled}")

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state, lease_seconds=3):
        await asyncio.wait_for(begun.wait(), 60)
        asked = await state.tasks.cancel(task.id)
        assert asked.cancel_requested
        await _until(state, task.id, _is(TaskState.CANCELED))
    assert seen == ["stopped, cancelled=True"]


async def test_a_completion_that_races_a_cancel_never_wins_after_it(state: State) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def work(_task: TaskContext) -> None:
        begun.set()
        await go.wait()

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state):
        await asyncio.wait_for(begun.wait(), 60)
        await state.tasks.cancel(task.id)
        go.set()
        done = await _until(state, task.id, lambda one: one.terminal)
    assert done.state is TaskState.CANCELED


async def test_a_pause_takes_effect_at_the_next_step_and_a_resume_goes_on(state: State) -> None:
    ran: list[str] = []
    go = asyncio.Event()

    async def first() -> None:
        ran.append("first")
        await go.wait()

    async def work(task: TaskContext) -> None:
        await task.step("first", first)
        await task.step("second", lambda: ran.append("second"))

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state, lease_seconds=3) as worker:
        await _until(state, task.id, lambda _: bool(ran))
        await state.tasks.pause(task.id)
        async with asyncio.timeout(60):
            while not any(held.lease.pause_requested for held in worker._running.values()):
                await asyncio.sleep(0.01)
        go.set()
        await _until(state, task.id, _is(TaskState.PAUSED))
        assert ran == ["first"]
        await state.tasks.resume(task.id)
        await _until(state, task.id, _is(TaskState.COMPLETED))
    assert ran == ["first", "second"]


async def test_a_drain_waits_for_handlers_and_hands_the_rest_back(state: State) -> None:
    begun: list[str] = []
    go = asyncio.Event()

    async def work(task: TaskContext) -> None:
        begun.append(task.message.text)
        await (go.wait() if task.message.text == "quick" else asyncio.sleep(3600))

    app = _app(work)
    quick, slow = await app.submit(state, "quick"), await app.submit(state, "slow")
    async with _working(app, state, grace_seconds=0.3) as worker:
        await _until(state, slow.id, lambda _: len(begun) == 2)
        worker.stop()
        go.set()
    assert (await _until(state, quick.id, lambda _: True)).state is TaskState.COMPLETED
    handed = await _until(state, slow.id, lambda _: True)
    assert (handed.state, handed.attempts, handed.worker) == (TaskState.SUBMITTED, 0, "")


async def test_what_a_dead_worker_held_goes_on_elsewhere(state: State) -> None:
    async def work(task: TaskContext) -> str:
        return f"attempt {task.attempt}"

    app = _app(work)
    task = await app.submit(state, "go")
    [dead] = await state.tasks.claim("dead", lease_seconds=0.1)
    async with _working(app, state):
        done = await _until(state, task.id, _is(TaskState.COMPLETED))
    assert done.messages[-1].text == "attempt 2"
    assert await state.tasks.complete_many([dead.lease]) == [None]


async def test_a_task_that_kills_its_workers_ends_as_failed(state: State) -> None:
    async def work(_task: TaskContext) -> None: ...

    app = _app(work, max_attempts=2)
    task = await app.submit(state, "go")
    for number in range(2):
        [_] = await state.tasks.claim(f"dead-{number}", lease_seconds=0.05)
        async with asyncio.timeout(60):
            while not await state.tasks.recover_expired():
                await asyncio.sleep(0.01)
    failed = await _until(state, task.id, lambda one: one.terminal)
    assert failed.state is TaskState.FAILED
    assert "the lease of dead-1 expired" in failed.note


async def test_a_handler_that_blocks_its_loop_keeps_its_lease(state: State) -> None:
    """In memory there is no thread for heartbeats: nobody else could take the task either."""
    if state.ops.elsewhere() is None:
        pytest.skip("the in-memory engine lives on one event loop")

    async def work(_task: TaskContext) -> None:
        time.sleep(4)  # noqa: ASYNC251 - the point

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state, lease_seconds=3):
        done = await _until(state, task.id, lambda one: one.terminal)
    assert (done.state, done.fence) == (TaskState.COMPLETED, 1)


async def test_a_worker_that_cannot_send_heartbeats_fences_itself(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = asyncio.Event()

    async def work(task: TaskContext) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            if task.cancelled:
                stopped.set()

    async def unreachable(_self: Any, lease: Lease, **_how: Any) -> Lease:
        raise UnavailableError("ledger", f"no way to it for {lease.task_id}")

    monkeypatch.setattr(Ledger, "heartbeat", unreachable)
    app = _app(work)
    await app.submit(state, "go")
    async with _working(app, state, lease_seconds=0.6, recovery_seconds=60):
        await asyncio.wait_for(stopped.wait(), 60)


async def test_the_same_answer_resumes_a_task_once(state: State) -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> str:
        runs.append(1)
        return (await task.ask("Which?")).text

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state):
        await _until(state, task.id, _is(TaskState.INPUT_REQUIRED))
        answer = ChatMessage.user("this")
        await asyncio.gather(*(state.tasks.respond(task.id, answer) for _ in range(5)))
        await _until(state, task.id, _is(TaskState.COMPLETED))
    assert len(runs) == 2


async def test_a_tenant_that_has_only_what_a_dead_worker_held_is_not_forgotten(
    state: State,
) -> None:
    async def work(_task: TaskContext) -> None: ...

    app = App("forgets-nobody")
    app.handler(work)
    task = await app.submit(state, "go")
    [_] = await state.tasks.claim("dead", lease_seconds=0.1)
    async with _working(app, state, tenants=None):
        await _until(state, task.id, _is(TaskState.COMPLETED))


async def test_tenants_take_turns(state: State) -> None:
    order: list[str] = []

    async def work(task: TaskContext) -> None:
        order.append(task.tenant)

    app = _app(work)
    names = [f"{state.tenant}-{letter}" for letter in "abc"]
    tasks = [
        (stores, await app.submit(stores, "go"))
        for stores in map(state.for_tenant, names)
        for _ in range(3)
    ]
    async with _working(app, state, tenants=names, concurrency=1):
        for stores, task in tasks:
            await _until(stores, task.id, _is(TaskState.COMPLETED))
    assert [sorted(order[at : at + 3]) for at in (0, 3, 6)] == [names] * 3


async def test_those_who_watch_are_told_how_each_run_ended(state: State) -> None:
    endings: list[Ending] = []

    async def work(task: TaskContext) -> None:
        if task.attempt == 1:
            raise ValueError("not yet")

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state, watch=endings.append):
        await _until(state, task.id, _is(TaskState.COMPLETED))
    reply = [(one.task_id, one.tenant, one.agent, one.attempt, one.outcome) for one in endings]
    facts = (task.id, state.tenant, "writer")
    assert reply == [(*facts, 1, "submitted"), (*facts, 2, "completed")]
    assert endings[0].why == "ValueError: not yet"


async def test_a_handler_that_cancels_itself_is_a_failed_attempt(state: State) -> None:
    async def work(_task: TaskContext) -> None:
        raise asyncio.CancelledError

    app = _app(work, max_attempts=1)
    task = await app.submit(state, "go")
    async with _working(app, state):
        failed = await _until(state, task.id, lambda one: one.terminal)
    assert failed.state is TaskState.FAILED
    assert "CancelledError" in failed.note


async def test_those_who_watch_are_told_what_a_suspended_task_waits_for(state: State) -> None:
    endings: list[Ending] = []

    async def work(task: TaskContext) -> None:
        await task.ask("Which?")

    app = _app(work)
    task = await app.submit(state, "go")
    async with _working(app, state, watch=endings.append):
        await _until(state, task.id, lambda _: bool(endings))
    assert [one.outcome for one in endings] == ["input-required"]


@pytest.mark.parametrize("own", [2, 5])
async def test_the_last_attempt_after_a_death_is_made_alone(state: State, own: int) -> None:
    """Any of them may have killed the worker: none takes another along, and each has its chance."""
    at_work: set[str] = set()
    beside: dict[str, set[str]] = {}

    async def work(task: TaskContext) -> None:
        beside[task.id] = set(at_work)
        for other in at_work:
            beside[other].add(task.id)
        at_work.add(task.id)
        await asyncio.sleep(0.02)
        at_work.discard(task.id)

    app = _app(work, max_attempts=2)
    go = [ChatMessage.user("go") for _ in range(4)]
    tasks = [await state.tasks.submit("writer", one, max_attempts=own) for one in go]
    assert len(await state.tasks.claim("dead", limit=4, lease_seconds=0.05)) == 4
    async with asyncio.timeout(60):
        while len((await state.tasks.list(states=["submitted"])).tasks) < 4:
            await state.tasks.recover_expired()
    async with _working(app, state):
        for task in tasks:
            done = await _until(state, task.id, lambda one: one.terminal)
            assert done.state is TaskState.COMPLETED
    assert [one for one, others in beside.items() if not others], "none ran alone"
    await check_invariants(state.tasks, submitted=4)


async def test_the_last_attempt_after_an_error_is_made_beside_others(state: State) -> None:
    both = asyncio.Barrier(2)

    async def work(task: TaskContext) -> None:
        if task.attempt == 1:
            raise ValueError("not yet")
        async with asyncio.timeout(60):
            await both.wait()

    app = _app(work, max_attempts=2)
    tasks = [await app.submit(state, "go") for _ in range(2)]
    async with _working(app, state):
        for task in tasks:
            await _until(state, task.id, _is(TaskState.COMPLETED))
