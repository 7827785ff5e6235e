"""The same agent code on Postgres: in a folder, on a server, and without an event loop."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
import holdfast.blocking
from holdfast import AgentId, ChatMessage, Document, Entity, Event
from holdfast.spi import StepKey
from scripts.generate_docs import PROTOCOLS
from tests.engines.postgres import server
from tests.engines.postgres_database import connected, empty_database

AGENT = AgentId("planner", "a1")


@pytest.fixture
def folder() -> Iterator[str]:
    """A place that the server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-state-") as name:
        Path(name).chmod(0o755)
        yield f"{name}/state"


async def _use_everything(state: holdfast.State) -> None:
    await state.history.append(AGENT, ChatMessage.user("which database?"), session_id="s1")
    await state.episodes.append([Event(AGENT, "s1", "decision", {"use": "postgres"})])
    await state.short_term.update_state("s1", {"step": 1})
    await state.long_term.save(AGENT, "Ana prefers tea")
    await state.graph.add_entities([Entity("Person", {"name": "Ana"}, "ana")])
    await state.vectors.add([Document.from_text("tides", id="d1", embedding=[1.0, 0.0])])
    await state.boards.create_task_list("c1", ["order tugs"])
    await state.channel("alerts").publish({"level": "high"})
    ref = await state.blobs.store(b"bytes")
    await state.blobs.pin(ref)
    await state.short_term.update_state("s1", {"ref": ref})
    await state.tasks.submit(AGENT, ChatMessage.user("berth the ship"), submit_key="k1")
    [claimed] = await state.tasks.claim("w1")
    await state.tasks.record_step(claimed.lease, StepKey("tugs"), {"count": 2})


async def _find_everything(state: holdfast.State) -> None:
    [message] = await state.history.get_messages(AGENT, session_id="s1")
    assert message.text == "which database?"
    [hit] = await state.episodes.recall(AGENT, "postgres")
    assert hit.event.payload == {"use": "postgres"}
    working = await state.short_term.get_state("s1")
    assert working["step"] == 1
    [fact] = await state.long_term.search(AGENT, "who likes tea?")
    assert fact.content == "Ana prefers tea"
    assert [one.id for one in (await state.graph.get_neighbors("ana")).entities] == ["ana"]
    assert [one.id for one in await state.vectors.search([1.0, 0.1])] == ["d1"]
    board = await state.boards.get_by_conversation("c1")
    assert board is not None
    assert board.tasks[0].title == "order tugs"
    assert [one.event for one in await state.channel("alerts").read()] == [{"level": "high"}]
    assert await state.blobs.resolve(working["ref"]) == b"bytes"
    task = await state.tasks.submit(AGENT, ChatMessage.user("berth the ship"), submit_key="k1")
    [step] = await state.tasks.steps(task.id)
    assert (task.state, step.result) == ("working", {"count": 2})


@pytest.mark.asyncio
async def test_a_folder_keeps_everything_that_was_written(folder: str) -> None:
    async with holdfast.open(folder) as state:
        await _use_everything(state)
        for name in PROTOCOLS.keys() - {"blob_index", "channels", "memory"}:
            assert isinstance(getattr(state, name), PROTOCOLS[name])
        assert set(state.engines.values()) == {"postgres"}
        health = await state.ops.health()
        assert health.status == "ok"
        assert "Postgres 18" in health.engines[0].detail
    async with holdfast.open(folder) as state:
        await _find_everything(state)
        assert await state.for_tenant("other").short_term.get_state("s1") == {}


@pytest.mark.asyncio
async def test_the_environment_chooses_the_folder(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STORAGE_TYPE", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_DIR", folder)
    async with holdfast.open() as state:
        await state.short_term.set_state("s1", {"a": 1})
    assert (Path(folder) / "data" / "PG_VERSION").exists()


@pytest.mark.asyncio
async def test_a_fresh_server_by_its_url_needs_nothing_else_and_keeps_everything() -> None:
    async with empty_database(16) as url:
        settings = holdfast.Settings(storage_type="postgres", database_url=url)
        async with holdfast.open(settings=settings) as state:
            await _use_everything(state)
        async with holdfast.open(url) as state:
            await _find_everything(state)


@pytest.mark.asyncio
async def test_the_settings_limit_what_a_statement_may_take() -> None:
    async with empty_database() as url, connected(url) as other:
        # To make the schema takes longer.
        async with holdfast.open(url):
            pass
        # To connect takes less, also beside other work.
        settings = holdfast.Settings(database_url=url, command_timeout_seconds=2)
        async with holdfast.open(settings=settings) as state, other.transaction():
            await other.execute("LOCK TABLE holdfast.states IN ACCESS EXCLUSIVE MODE")
            async with asyncio.timeout(30):
                with pytest.raises(holdfast.errors.TimedOutError):
                    await state.short_term.get_state("s1")


@pytest.mark.asyncio
async def test_a_server_that_is_down_is_told_by_health(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    wrong = server(18).url().replace("only-for-tests", "wrong-password")
    with pytest.raises(holdfast.errors.ConfigError) as caught:
        await holdfast.open(wrong)
    assert "wrong-password" not in str(caught.value)


def test_a_folder_without_an_event_loop(folder: str) -> None:
    with holdfast.blocking.open(folder) as state:
        ref = state.blobs.store(b"x" * 2_500_000)
        assert b"".join(state.blobs.open(ref)) == b"x" * 2_500_000
