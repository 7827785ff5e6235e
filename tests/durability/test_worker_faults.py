"""Worker processes and Postgres are killed; the tasks go on. Random faults: test_task_faults.py."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import holdfast
from holdfast import ChatMessage, Settings, State, TaskRecord, TaskState
from holdfast.content import TextBlock
from holdfast.errors import EngineError
from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.postgres_server import PostgresServer
from holdfast.values.ids import new_ref
from tests.durability.fault_agents import CHUNKS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

LEASE_SECONDS = 4.0
"""Short, so that the next worker need not wait long for the task of one that was killed."""


@pytest_asyncio.fixture(scope="module")
async def server() -> AsyncIterator[PostgresServer]:
    """A Postgres to be killed, with the schema."""
    made = PostgresServer(18)
    try:
        made.start()
        async with holdfast.open(made.url(), settings=Settings(auto_migrate=True)):
            pass
        yield made
    finally:
        made.remove()


@pytest_asyncio.fixture
async def state(server: PostgresServer) -> AsyncIterator[State]:
    """A tenant of its own."""
    async with holdfast.open(
        server.url(), tenant=new_ref(), settings=Settings(max_connections=4)
    ) as opened:
        yield opened


class Workers:
    """Worker processes of one tenant."""

    def __init__(self, server: PostgresServer, tenant: str, folder: Path) -> None:
        self._server = server
        self._tenant = tenant
        self._folder = folder
        self.journal = folder / "journal"
        self.journal.touch()
        self._hired: list[subprocess.Popen[bytes]] = []

    def start_now(self, *options: str) -> subprocess.Popen[bytes]:
        """Start ``holdfast worker``."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        with (self._folder / "log").open("ab") as log:
            worker = subprocess.Popen(
                [
                    *(sys.executable, "-m", "holdfast.cli", "worker", "fault_agents:app"),
                    *("--tenant", self._tenant, "--lease-seconds", str(LEASE_SECONDS)),
                    *("--recovery-seconds", "0.2", "--poll-seconds", "0.2", "--log-json"),
                    *options,
                ],
                cwd=Path(__file__).parent,
                env={
                    **kept,
                    "DATABASE_URL": self._server.url(),
                    "FAULT_JOURNAL": str(self.journal),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._hired.append(worker)
        return worker

    def noted(self, task: TaskRecord) -> list[str]:
        """What handlers did for a task, in every process."""
        lines = [line.split(" ", 1) for line in self.journal.read_text().splitlines()]
        return [what for task_id, what in lines if task_id == task.id]

    def stop(self) -> None:
        """End all that are left."""
        for worker in self._hired:
            worker.kill()
            worker.wait()

    @property
    def log(self) -> str:
        """What the workers said."""
        return (self._folder / "log").read_text()


@pytest.fixture
def workers(server: PostgresServer, state: State, tmp_path: Path) -> Iterator[Workers]:
    """Nobody yet; those that are started are stopped at the end."""
    made = Workers(server, state.tenant, tmp_path)
    yield made
    made.stop()


async def _submit(state: State, agent: str, text: str, *, max_attempts: int = 5) -> TaskRecord:
    return await state.tasks.submit(agent, ChatMessage.user(text), max_attempts=max_attempts)


async def _until(
    state: State, task: TaskRecord, reached: Callable[[TaskRecord], bool]
) -> TaskRecord:
    async with asyncio.timeout(90):
        while True:
            try:
                found = await state.tasks.get(task.id)
            except EngineError:
                # Postgres is about to be back.
                found = None
            if found is not None and reached(found):
                return found
            await asyncio.sleep(0.02)


async def _ended(worker: subprocess.Popen[bytes]) -> int:
    return await asyncio.to_thread(worker.wait, 60)


def _is(wanted: TaskState) -> Callable[[TaskRecord], bool]:
    return lambda task: task.state is wanted


def _text(task: TaskRecord) -> bytes:
    [artifact] = task.artifacts
    return "".join(part.text for part in artifact.parts if isinstance(part, TextBlock)).encode()


async def test_a_stream_cut_by_kill_9_ends_as_the_same_bytes(
    state: State, workers: Workers
) -> None:
    cut, whole = await _submit(state, "streamer", "0.05"), await _submit(state, "streamer", "0")
    first = workers.start_now("--concurrency", "1")

    def in_the_middle(task: TaskRecord) -> bool:
        return bool(task.artifacts) and len(_text(task).splitlines()) > 5

    half = await _until(state, cut, in_the_middle)
    first.kill()
    await _ended(first)
    assert len(_text(half).splitlines()) < CHUNKS
    workers.start_now()
    done = await _until(state, cut, _is(TaskState.COMPLETED))
    undisturbed = await _until(state, whole, _is(TaskState.COMPLETED))
    assert (done.fence, undisturbed.fence) == (2, 1)
    assert _text(done) == _text(undisturbed)
    assert _text(done).endswith(b"the end\n")
    assert done.artifacts[0].complete
    assert workers.noted(cut) == ["head"], "a finished step ran again"
    await check_invariants(state.tasks, submitted=2)


async def test_sigterm_drains_with_exit_code_0_and_hands_back_what_is_not_done(
    state: State, workers: Workers
) -> None:
    quick, slow = await _submit(state, "sleeper", "1.5"), await _submit(state, "sleeper", "3600")
    # A lease that a busy machine cannot let run out, and time enough for the quick one to end.
    worker = workers.start_now("--grace-seconds", "10", "--lease-seconds", "60")
    for task in (quick, slow):
        await _until(state, task, lambda one: bool(workers.noted(one)))
    worker.send_signal(signal.SIGTERM)
    await _until(state, slow, lambda _: "waiting for 2 handlers" in workers.log)
    late = await _submit(state, "sleeper", "0")
    assert await _ended(worker) == 0, workers.log
    done = await _until(state, quick, lambda _: True)
    handed = await _until(state, slow, lambda _: True)
    assert done.state is TaskState.COMPLETED
    assert (handed.state, handed.attempts, handed.worker) == (TaskState.SUBMITTED, 0, "")
    assert handed.note == "the worker is stopping"
    assert (await _until(state, late, lambda _: True)).fence == 0, "it claimed while it drained"
    await check_invariants(state.tasks, submitted=3)


async def test_a_question_survives_the_death_of_the_worker_and_of_postgres(
    state: State, workers: Workers, server: PostgresServer
) -> None:
    task = await _submit(state, "asker", "go")
    worker = workers.start_now()
    await _until(state, task, _is(TaskState.INPUT_REQUIRED))
    worker.kill()
    await _ended(worker)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    waiting = await _until(state, task, lambda _: True)
    assert waiting.state is TaskState.INPUT_REQUIRED
    assert waiting.status_message is not None
    assert waiting.status_message.text == "Which chapter?"
    workers.start_now()
    await state.tasks.respond(task.id, ChatMessage.user("two"))
    done = await _until(state, task, _is(TaskState.COMPLETED))
    assert done.messages[-1].text == "chapter two"
    assert workers.noted(task) == ["before", "after"]
    await check_invariants(state.tasks, submitted=1)


async def test_what_a_killed_handler_appended_to_its_transcript_is_there_once(
    state: State, workers: Workers
) -> None:
    task = await _submit(state, "noter", "go")
    assert await _ended(workers.start_now()) == -signal.SIGKILL
    workers.start_now()
    waiting = await _until(state, task, _is(TaskState.INPUT_REQUIRED))
    await state.tasks.respond(task.id, ChatMessage.user("yes"))
    done = await _until(state, task, lambda one: one.terminal)
    assert (done.state, waiting.fence) == (TaskState.COMPLETED, 2), done.note
    assert workers.noted(task) == ["appended"] * 3
    # It is beside what was said in the task.
    said = await state.history.get_messages(task.agent, session_id=task.session_id)
    assert [one.text for one in said if one.text in {"one", "two"}] == ["one", "two"]


async def test_a_task_that_kills_its_workers_fails_and_all_others_are_done(
    state: State, workers: Workers
) -> None:
    """All have as many attempts: those that died with it must not fail with it."""
    crasher = await _submit(state, "crasher", "go", max_attempts=3)
    others = [await _submit(state, "counter", str(at), max_attempts=3) for at in range(8)]

    async def supervise() -> None:
        while True:
            await _ended(workers.start_now())

    supervisor = asyncio.create_task(supervise())
    try:
        failed = await _until(state, crasher, lambda task: task.terminal)
        for other in others:
            done = await _until(state, other, lambda task: task.terminal)
            assert done.state is TaskState.COMPLETED, done.note
    finally:
        supervisor.cancel()
        await asyncio.gather(supervisor, return_exceptions=True)
    assert failed.state is TaskState.FAILED
    assert "expired" in failed.note
    assert workers.noted(crasher) == ["crash"] * 3
    await check_invariants(state.tasks, submitted=9)
