from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import holdfast.blocking
from holdfast import AgentId, App, ChatMessage, TaskContext, TaskRecord, TaskState
from holdfast.blocking import BlockingState
from holdfast.errors import ConfigError, NotFoundError, UnavailableError

AGENT = AgentId.parse("planner/a1")


FORKS = """
import os, signal, sys, warnings
import holdfast
warnings.simplefilter("ignore")
with holdfast.blocking.open("memory:") as state:
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            state.short_term.get_state("s1")
        except holdfast.errors.ConfigError as error:
            sys.exit(str(error))
        sys.exit("it answered")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    state.short_term.set_state("s1", {"parent": "goes on"})
    print(state.short_term.get_state("s1"))
"""
FORGETS = """
import sys
import holdfast.blocking
state = holdfast.blocking.open(sys.argv[1])
state.short_term.set_state("s1", {"step": 1})
print("opened")
"""


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def _threads() -> int:
    return sum(thread.name == "holdfast.portal" for thread in threading.enumerate())


def test_the_same_methods_wait_for_their_answer() -> None:
    with holdfast.blocking.open("memory:") as state:
        state.history.append(AGENT, ChatMessage.user("hello"), session_id="s1")
        [message] = state.history.get_messages(AGENT, session_id="s1")
        assert message.text == "hello"
        assert state.ops.health().status == "ok"
        assert state.tenant == "default"
    assert _threads() == 0


def test_errors_come_through_as_they_are() -> None:
    with holdfast.blocking.open("memory:") as state, pytest.raises(NotFoundError):
        state.blobs.resolve("nothing")


def test_a_failed_open_leaves_no_thread() -> None:
    with pytest.raises(UnavailableError):
        holdfast.blocking.open("redis://127.0.0.1:1")
    assert _threads() == 0


def test_streams_are_plain_iterators() -> None:
    with holdfast.blocking.open("memory:") as state:
        ref = state.blobs.store(b"x" * 3_000_000)
        assert b"".join(state.blobs.open(ref)) == b"x" * 3_000_000
        chunks = iter(state.blobs.open(ref))
        assert next(chunks)


def test_a_view_for_another_tenant_is_blocking_too_and_closes_nothing() -> None:
    with holdfast.blocking.open("memory:") as state:
        acme = state.for_tenant("acme")
        acme.short_term.set_state("s1", {"a": 1})
        assert state.short_term.get_state("s1") == {}
        acme.close()
        assert acme.short_term.get_state("s1") == {"a": 1}


def test_threads_may_share_it() -> None:
    with holdfast.blocking.open("memory:") as state, ThreadPoolExecutor(8) as pool:
        patches = [{f"k{at}": at} for at in range(100)]
        list(pool.map(lambda patch: state.short_term.update_state("s1", patch), patches))
        assert len(state.short_term.get_state("s1")) == 100


def test_after_close_it_says_so() -> None:
    state = holdfast.blocking.open("memory:")
    store = state.short_term
    state.close()
    state.close()
    with pytest.raises(ConfigError, match="closed"):
        store.get_state("s1")


def test_it_works_in_a_thread_whose_event_loop_is_running_as_in_a_notebook() -> None:
    with holdfast.blocking.open("memory:") as state:
        ref = state.blobs.store(b"x" * 10)

        async def cell() -> bytes:
            state.short_term.set_state("s1", {"step": 1})
            return b"".join(state.blobs.open(ref))

        assert asyncio.run(cell()) == b"x" * 10
        assert state.short_term.get_state("s1") == {"step": 1}


def test_a_call_on_its_own_event_loop_is_refused_and_names_what_to_use() -> None:
    app = App("demo")
    with holdfast.blocking.open("memory:") as state:

        @app.handler(agent="writer")
        async def writer(task: TaskContext) -> str:
            with pytest.raises(ConfigError, match=r"would block .* in a handler use task\.stores"):
                state.short_term.get_state("s1")
            with pytest.raises(ConfigError, match="would block"):
                state.close()
            return f"refused {task.message.text}"

        task = state.tasks.submit("writer", ChatMessage.user("go"))
        assert state.worker(app).run_until_idle() == 1
        assert _ended(state, task)[-1] == "refused go"


def _ended(state: BlockingState, task: TaskRecord) -> list[str]:
    """Wait until a task has ended, and return the texts of its messages."""
    assert list(state.tasks.follow(task.id))
    found = state.tasks.get(task.id)
    assert found is not None
    assert found.state is TaskState.COMPLETED
    return [message.text for message in found.messages]


def _echo() -> App:
    app = App("demo")

    @app.handler(agent="echo")
    async def echo(task: TaskContext) -> str:
        return task.message.text

    return app


def test_a_worker_runs_an_app_beside_the_code_of_its_block_and_drains_at_its_end() -> None:
    with holdfast.blocking.open("memory:") as state:
        with state.worker(_echo(), concurrency=2, name="w1") as worker:
            assert worker.name == "w1"
            tasks = [state.tasks.submit("echo", ChatMessage.user("go")) for _ in range(5)]
            for task in tasks:
                assert _ended(state, task) == ["go", "go"]
        assert worker.running == 0
        late = state.tasks.submit("echo", ChatMessage.user("late"))
        with pytest.raises(ConfigError, match=r"state\.worker"), worker:
            raise AssertionError("a worker is started once")
        found = state.tasks.get(late.id)
        assert found is not None
        assert found.state is TaskState.SUBMITTED


def test_a_worker_that_runs_is_stopped_from_another_thread() -> None:
    with holdfast.blocking.open("memory:") as state, ThreadPoolExecutor(1) as pool:
        worker = state.worker(_echo())
        running = pool.submit(worker.run)
        task = state.tasks.submit("echo", ChatMessage.user("go"))
        try:
            assert _ended(state, task) == ["go", "go"]
        finally:
            worker.stop()
        running.result()


INTERRUPTED = """
import holdfast, holdfast.blocking, os, signal
# A shell starts programs in the background with SIGINT ignored, and so they start theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)
app = holdfast.App("demo")

@app.handler(agent="echo")
async def echo(task):
    os.kill(os.getpid(), signal.SIGINT)
    return task.message.text

with holdfast.blocking.open("memory:") as state:
    task = state.tasks.submit("echo", holdfast.ChatMessage.user("go"))
    state.worker(app).run()
    print(state.tasks.get(task.id).state.value)
"""


def test_an_interrupt_drains_a_worker() -> None:
    assert _python(INTERRUPTED).stdout == "completed\n"


def test_a_memory_waits_for_its_answers_too() -> None:
    with holdfast.blocking.open("memory:") as state:
        memory = state.memory("planner/a1", session_id="s1")
        assert memory.record("decision", {"use": "postgres"}).seq == 1
        memory.state.update({"step": 2})
        fact = memory.facts.save("Bo sails")
        woken = memory.hydrate("postgres?")
        assert (woken.state, len(woken.recalled)) == ({"step": 2}, 1)
        found = memory.facts.get(fact)
        assert found is not None
        assert found.content == "Bo sails"


def test_a_fork_is_told_to_open_its_own_and_its_parent_goes_on() -> None:
    done = _python(FORKS)
    assert "opened before a fork: open one in each process" in done.stderr
    assert done.stdout == "{'parent': 'goes on'}\n"


def test_a_process_that_ends_without_closing_stops_the_server_of_its_folder() -> None:
    with tempfile.TemporaryDirectory(prefix="hf-blocking-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "state"
        done = _python(FORGETS, str(folder))
        left = folder / "data" / "postmaster.pid"
        server = int(left.read_text().split()[0]) if left.exists() else None
        if server is not None:
            os.kill(server, signal.SIGQUIT)
        assert (done.stdout, done.stderr, server) == ("opened\n", "", None)
        assert (folder / "data").is_dir()


def test_a_notebook_can_complete_its_names_and_show_their_help() -> None:
    with holdfast.blocking.open("memory:") as state:
        assert {"history", "short_term", "close", "ops", "for_tenant"} <= set(dir(state))
        assert "aclose" not in dir(state)
        assert {"get_state", "set_state"} <= set(dir(state.short_term))
        method = state.short_term.set_state
        assert method.__name__ == "set_state"
        assert method.__doc__
        assert "ttl_seconds" in inspect.signature(method).parameters


def test_the_view_of_an_owner_and_states_that_expire_need_no_event_loop_either() -> None:
    settings = holdfast.Settings(state_ttl_seconds=3600)
    with holdfast.blocking.open("memory:", settings=settings) as state:
        for owned in (state, state.for_owner("ana")):
            owned.short_term.set_state("s1", {"a": 1})
            assert owned.short_term.get_state("s1") == {"a": 1}
            owned.history.append("a1", ChatMessage.user("hello"), session_id="s1")
            assert len(owned.history.get_messages("a1", session_id="s1")) == 1
            owned.memory("a1", session_id="s1").state.update({"b": 2})
            task = owned.tasks.submit("a1", ChatMessage.user("go"))
            found = owned.tasks.get(task.id)
            assert found is not None
            assert found.owner == owned.owner
