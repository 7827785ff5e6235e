"""What a worker does after the dead, and that nothing a tenant stores can stop it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
import pytest

import holdfast
from holdfast import App, ChatMessage, State, TaskContext, TaskState, Worker
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.errors import InvalidInputError
from holdfast.runtime.background import BackgroundJob
from holdfast.runtime.cleanup import clear_context, sweep, sweep_earlier
from holdfast.runtime.cleanup_upgrade import MARKS, files_session
from holdfast.runtime.offload import LARGE_BYTES
from holdfast.values.ids import new_ref
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")
GO = ChatMessage.user("go")


def _app() -> App:
    app = App(f"writer-{new_ref()}")

    @app.handler(backoff_seconds=0.001)
    async def work(task: TaskContext) -> None:
        await task.state.update({"seen": "a value, and no mark"})
        if task.message.text == "file":
            await task.artifact("kept.bin", b"y" * LARGE_BYTES)

    return app


@asynccontextmanager
async def _working(app: App, state: State, **how: Any) -> AsyncIterator[None]:
    worker = Worker(app, state, poll_seconds=0.05, recovery_seconds=0.05, **how)
    run = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        async with asyncio.timeout(60):
            await run


async def _reaches(state: State, task_id: str, *wanted: TaskState) -> None:
    async with asyncio.timeout(60):
        while True:
            task = await state.tasks.get(task_id)
            assert task is not None
            if task.state in wanted:
                return
            await asyncio.sleep(0.01)


async def _dead_workers_task(state: State) -> str:
    """A task that a dead worker holds, of an agent that nobody here works for."""
    agent = new_ref()
    task = await state.tasks.submit(agent, GO)
    [_] = await state.tasks.claim("dead", agents=[agent], lease_seconds=0.01)
    return task.id


async def _recovers(state: State, rounds: int = 3) -> None:
    """Recovery goes on: what dies later is found, too."""
    for _ in range(rounds):
        task_id = await _dead_workers_task(state)
        await _reaches(state, task_id, TaskState.SUBMITTED)


def _two(state: State) -> tuple[State, State]:
    return (
        state.for_tenant(f"{state.tenant}-1-damaged"),
        state.for_tenant(f"{state.tenant}-2-good"),
    )


async def test_a_clients_context_cannot_be_one_of_ours(state: State) -> None:
    app = _app()
    for session_id in ("holdfast.cleanup", "holdfast.files.x"):
        with pytest.raises(InvalidInputError) as caught:
            await app.submit(state, "go", session_id=session_id)
        assert caught.value.field == "session_id"


async def test_values_where_earlier_versions_kept_marks_stop_no_recovery(state: State) -> None:
    damaged, good = _two(state)
    values: dict[str, Any] = {
        "text": "x",
        "none": None,
        "list": [1],
        "mark": {"blobs": ["", 7, None], "run": True, "session": 3, "files": "x"},
        "zero \0": {"run": True, "session": "c1", "agent": ""},
    }
    await damaged.short_term.update_state(MARKS, values)
    app = _app()
    async with _working(app, state):
        task = await app.submit(damaged, "go")
        await _reaches(damaged, task.id, TaskState.COMPLETED)
        await _recovers(good)
        await _recovers(damaged)
    assert (await damaged.short_term.get_state(MARKS)).keys() >= {"text", "none", "list"}


async def test_a_damaged_mark_stops_neither_other_marks_nor_recovery(
    state: State, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, good = _two(state)
    app = _app()
    ref = await damaged.blobs.store(b"x", content_type="text/plain")
    await damaged.blobs.pin(ref)
    task_ids = []
    for kind, what in (("run", "without an agent"), ("blob", ref)):
        task = await damaged.tasks.submit("gone", GO)
        task_ids.append(task.id)
        [claimed] = await damaged.tasks.claim("dead", agents=["gone"])
        await damaged.tasks.add_cleanup(claimed.lease, kind, what)  # type: ignore[arg-type]
        await damaged.tasks.transition(claimed.lease, "completed")
    with caplog.at_level(logging.ERROR, "holdfast.worker"):
        async with _working(app, state):
            async with asyncio.timeout(60):
                while await damaged.tasks.list_cleanup(task_ids[1]):
                    await asyncio.sleep(0.01)
            await _recovers(good)
            await _recovers(damaged)
    assert not (await damaged.blobs.stat(ref)).pinned
    assert len(await damaged.tasks.list_cleanup(task_ids[0])) == 1
    assert f"task {task_ids[0]} of tenant {damaged.tenant}: cannot clean up" in caplog.text


async def test_a_tenant_whose_tasks_cannot_be_read_stops_no_other_tenants_recovery(
    state: State, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, good = _two(state)
    app = _app()
    async with _working(app, state):
        task_id = await _dead_workers_task(damaged)
        storage = cast("Ledger", damaged.tasks)._storage
        if isinstance(storage, InMemoryLedger):
            storage._data.tasks[task_id].metadata = "{"
        else:
            connection = await asyncpg.connect(database)
            await connection.execute(
                "UPDATE holdfast.tasks SET metadata = '{' WHERE id = $1", task_id
            )
            await connection.close()
        await _recovers(good)
    # Where the worker was faster than the damage there was nothing wrong yet.
    assert all(
        damaged.tenant in one.getMessage() for one in caplog.records if one.levelname == "ERROR"
    )


async def test_marks_of_tenants_that_the_worker_has_not_met_are_carried_out(state: State) -> None:
    other, _ = _two(state)
    task = await other.tasks.submit("gone", GO)
    [claimed] = await other.tasks.claim("dead", agents=["gone"])
    ref = await other.blobs.store(b"x", content_type="text/plain")
    await other.tasks.add_cleanup(claimed.lease, "blob", ref)
    await other.blobs.pin(ref)
    await other.tasks.transition(claimed.lease, "completed")
    async with _working(_app(), state), asyncio.timeout(60):
        while await other.tasks.list_cleanup(task.id):
            await asyncio.sleep(0.01)
    assert not (await other.blobs.stat(ref)).pinned


@pytest.mark.parametrize("again", ["the same call", "a sweep"])
async def test_a_context_that_was_cleared_by_a_process_that_died_has_its_files_released(
    state: State, again: str
) -> None:
    app = _app()
    task = await app.submit(state, "file", session_id="c1")
    await app.run_until_idle(state)
    [artifact] = await state.tasks.artifacts(task.id)
    ref = getattr(artifact.parts[0], "blob_ref", "")
    assert await sweep(state) == 0
    assert (await state.blobs.stat(ref)).pinned
    # All that the process did before it died.
    assert await state.tasks.clear_context("c1") == 1
    assert (await state.blobs.stat(ref)).pinned
    if again == "a sweep":
        assert await sweep(state) == 1
    else:
        assert await clear_context(state, "c1") == 0
    assert not (await state.blobs.stat(ref)).pinned
    assert await sweep(state) == 0


async def test_what_earlier_versions_marked_is_carried_out_when_its_task_has_ended(
    state: State,
) -> None:
    app = App("writer")

    @app.handler
    async def work(task: TaskContext) -> None:
        await task.history.append(GO)
        await task.ask("Go on?")

    task = await app.submit(state, "go", session_id="c1")
    await app.run_until_idle(state)
    refs = [await state.blobs.store(b"x", content_type="text/plain") for _ in range(3)]
    for ref in refs:
        await state.blobs.pin(ref)
    mark = {"agent": "writer", "session": "c1", "run": True, "blobs": refs[:1], "files": refs[1:2]}
    await state.short_term.update_state(MARKS, {task.id: mark})
    await state.short_term.update_state(files_session("c1", ""), {task.id: refs[2:]})
    assert await sweep_earlier(state)
    assert all([(await state.blobs.stat(ref)).pinned for ref in refs])
    await state.tasks.cancel(task.id)
    assert not await sweep_earlier(state)
    assert [(await state.blobs.stat(ref)).pinned for ref in refs] == [False, False, True]
    assert await state.history.count_messages(app.agent, session_id="c1") == 0
    assert await state.short_term.get_state(MARKS) == {}
    assert await clear_context(state, "c1") == 1
    assert not (await state.blobs.stat(refs[2])).pinned
    assert await state.short_term.get_state(files_session("c1", "")) == {}


async def test_no_error_ends_a_background_job_and_an_end_from_outside_is_noticed() -> None:
    errors: list[BaseException] = [KeyError("x"), asyncio.CancelledError(), OSError("y")]
    done = asyncio.Event()

    async def work() -> None:
        if errors:
            raise errors.pop()
        done.set()

    job = BackgroundJob("a job", work, pause_seconds=0.001)
    async with asyncio.timeout(60):
        await done.wait()
    job.check()
    await job.aclose()
    with pytest.raises(RuntimeError, match="a job of the worker has ended"):
        job.check()


async def test_a_worker_whose_recovery_was_ended_ends_with_an_error(state: State) -> None:
    worker = Worker(_app(), state, poll_seconds=0.05)
    run = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        while not (found := [one for one in asyncio.all_tasks() if "recovery" in one.get_name()]):
            await asyncio.sleep(0.01)
        found[0].cancel()
        with pytest.raises(RuntimeError, match="recovery"):
            await run


async def test_a_worker_finds_the_marks_of_earlier_versions_that_only_redis_has(
    database: str,
) -> None:
    app = _app()
    async with holdfast.open(database, tenant=new_ref(), redis=valkey().url) as state:
        task = await app.submit(state, "go")
        ref = await state.blobs.store(b"x", content_type="text/plain")
        await state.blobs.pin(ref)
        mark = {"agent": str(app.agent), "session": task.session_id, "blobs": [ref]}
        await state.short_term.update_state(MARKS, {task.id: mark, "seen": "no mark"})
        async with _working(app, state), asyncio.timeout(60):
            while (await state.blobs.stat(ref)).pinned:
                await asyncio.sleep(0.01)
            while task.id in await state.short_term.get_state(MARKS):
                await asyncio.sleep(0.01)
        assert await state.short_term.get_state(MARKS) == {"seen": "no mark"}
