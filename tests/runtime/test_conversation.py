"""A context is one conversation: its tasks see it, memory has it, and a clear removes it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import App, ChatMessage, HistoryRetention, Settings, State, TaskContext, Worker
from holdfast.runtime.cleanup import clear_context
from holdfast.runtime.remember import Remembering
from holdfast.values.ids import new_ref
from tests.wiring.kept_states import fresh_state
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(params=["memory", "postgres", "hybrid"])
async def state(request: pytest.FixtureRequest, database: str) -> AsyncIterator[State]:
    """A state of each wiring, in a tenant of its own."""
    url = "memory:" if request.param == "memory" else database
    redis = valkey().url if request.param == "hybrid" else ""
    async with fresh_state(url, redis=redis) as opened:
        yield opened


def _app(seen: list[list[str]] | None = None, **how: Any) -> App:
    app = App("talker", **how)

    @app.handler(backoff_seconds=0.001)
    async def talk(task: TaskContext) -> str:
        if seen is not None:
            seen.append([one.text for one in await task.conversation()])
        await task.say(f"thinking about {task.message.text}")
        if "ask" in task.message.text:
            answer = await task.ask("which one?")
            return f"so {answer.text}"
        return f"done with {task.message.text}"

    return app


async def _log(state: State, owner: str = "", context: str = "c1") -> list[str]:
    messages = await state.for_owner(owner).history.get_messages(_app().agent, session_id=context)
    return [one.text for one in messages]


async def test_the_next_task_of_a_context_sees_what_was_said_before(state: State) -> None:
    seen: list[list[str]] = []
    app = _app(seen)
    for text in ("the tides", "the moon"):
        await app.submit(state, text, owner="ana", session_id="c1")
        await app.run_until_idle(state)
    await app.submit(state, "hello", owner="bob", session_id="c1")
    await app.run_until_idle(state)
    first = ["the tides", "thinking about the tides", "done with the tides"]
    assert seen == [["the tides"], [*first, "the moon"], ["hello"]]


async def test_what_is_said_in_a_task_is_in_its_memory_once_and_in_order(state: State) -> None:
    app = _app()
    task = await app.submit(state, "ask me", owner="ana", session_id="c1")
    await app.run_until_idle(state)
    said = ["ask me", "thinking about ask me", "which one?"]
    assert await _log(state, "ana") == said
    await state.for_owner("ana").tasks.respond(task.id, ChatMessage.user("the red one"))
    await app.run_until_idle(state)
    await app.submit(state, "the moon", owner="ana", session_id="c1")
    await app.run_until_idle(state)
    said += ["the red one", "so the red one"]
    assert await _log(state, "ana") == [
        *said,
        *("the moon", "thinking about the moon", "done with the moon"),
    ]
    hits = await state.for_owner("ana").memory(app.agent).recall("red")
    assert {hit.event.to_message().text for hit in hits} >= {"the red one", "so the red one"}
    record = await state.tasks.get(task.id, owner="ana")
    assert record is not None
    messages = await state.for_owner("ana").history.get_messages(app.agent, session_id="c1")
    assert [one.id for one in messages[:5]] == [one.id for one in record.messages]
    assert await _log(state) == []
    assert await _log(state, "bob") == []


async def test_recall_in_a_handler_finds_the_message_of_its_own_task(state: State) -> None:
    app, found = App("talker"), []

    @app.handler
    async def talk(task: TaskContext) -> None:
        found.extend(await task.memory.recall("harbour"))

    await app.submit(state, "which harbour?", owner="ana")
    await app.run_until_idle(state)
    assert [hit.event.to_message().text for hit in found] == ["which harbour?"]


async def test_a_task_that_never_ran_is_remembered_too(state: State) -> None:
    app = _app()
    task = await app.submit(state, "never mind", session_id="c1")
    await state.tasks.cancel(task.id)
    await Remembering(app).rested(state)
    assert await _log(state) == ["never mind"]
    assert await Remembering(app).rested(state) == 0


@pytest.mark.parametrize(
    "how", [{"remember": False}, {"retention": HistoryRetention.NONE}], ids=str
)
async def test_an_app_that_remembers_nothing_copies_nothing(
    state: State, how: dict[str, Any]
) -> None:
    app = _app(**how)
    await app.submit(state, "the tides", session_id="c1")
    await app.run_until_idle(state)
    assert await _log(state) == []
    assert await state.memory(app.agent).recall("tides") == []


async def test_a_handler_that_copies_its_message_itself_does_not_double_it(state: State) -> None:
    app = App("talker")

    @app.handler
    async def talk(task: TaskContext) -> None:
        await task.history.append(task.message)

    await app.submit(state, "the tides", session_id="c1")
    await app.run_until_idle(state)
    assert await _log(state) == ["the tides"]


async def test_message_ids_that_a_client_uses_again_lose_nothing(state: State) -> None:
    app = App("talker")

    @app.handler
    async def talk(_task: TaskContext) -> None: ...

    for text in ("one", "two", "two"):
        await app.submit(state, ChatMessage.user(text, id="m1"), session_id="c1")
        await app.run_until_idle(state)
    assert sorted(await _log(state)) == ["one", "two", "two"]


async def test_clearing_a_context_removes_state_transcript_memory_and_vectors(
    state: State,
) -> None:
    app = App("talker")

    @app.handler
    async def talk(task: TaskContext) -> None:
        await task.state.set({"draft": "tides"})
        await task.memory.record("decision", {"about": "tides"})
        await task.memory.record_many([("note", {"about": "tides"})], embeddings=[[1.0, 0.0]])

    for owner in ("ana", "bob"):
        await app.submit(state, "the tides", owner=owner, session_id="c1")
    await app.run_until_idle(state)
    assert await clear_context(state, "c1", owner="ana") == 1
    assert await clear_context(state, "c1", owner="ana") == 0
    ana, bob = state.for_owner("ana"), state.for_owner("bob")
    assert await ana.short_term.get_state("c1") == {}
    assert await ana.memory(app.agent, session_id="c1").recent() == []
    assert await ana.memory(app.agent).recall("tides") == []
    assert await ana.memory(app.agent).recall([1.0, 0.0]) == []
    assert await bob.short_term.get_state("c1") == {"draft": "tides"}
    assert len(await bob.memory(app.agent).recall("tides")) == 3


async def test_a_context_that_is_cleared_while_it_is_copied_stays_cleared(state: State) -> None:
    app = _app()
    task = await app.submit(state, "never mind", owner="ana", session_id="c1")
    await state.tasks.cancel(task.id, owner="ana")
    removed: list[int] = []

    class Cleared(Remembering):
        """A copy that is overtaken by a clear."""

        async def _copy(self, stores: Any, said: Any) -> None:
            await super()._copy(stores, said)
            removed.append(await clear_context(state, "c1", owner="ana"))
            await super()._copy(stores, said)

    await Cleared(app).rested(state)
    assert removed == [1]
    assert await _log(state, "ana") == []


PROGRAM = """
import asyncio, os, sys
import holdfast
from holdfast import App, Settings
from holdfast.runtime.remember import Remembering

app = App("talker")

@app.handler
async def talk(task):
    return "the last word"

async def die(self, stores):
    os._exit(9)

async def main(url, tenant):
    Remembering.rested = die
    async with holdfast.open(url, tenant=tenant, settings=Settings(max_connections=6)) as state:
        await app.run_until_idle(state)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_the_last_word_is_remembered_although_its_worker_died_before_it_could(
    database: str,
) -> None:
    """The worker dies after the task has ended and before its messages are copied."""
    tenant = new_ref()
    async with holdfast.open(
        database, tenant=tenant, settings=Settings(max_connections=6)
    ) as state:
        task = await _app().submit(state, "the tides", owner="ana", session_id="c1")
        died = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", PROGRAM, database, tenant], check=False
        )
        assert died.returncode == 9
        ended = await state.tasks.get(task.id, owner="ana")
        assert ended is not None
        assert ended.terminal
        assert await _log(state, "ana") == ["the tides"]
        worker = Worker(_app(), state, recovery_seconds=0.01)
        run = asyncio.create_task(worker.run())
        async with asyncio.timeout(60):
            while len(await _log(state, "ana")) < 2:
                await asyncio.sleep(0.01)
        worker.stop()
        await run
        assert await _log(state, "ana") == ["the tides", "the last word"]
