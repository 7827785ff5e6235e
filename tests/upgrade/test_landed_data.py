"""What the landed version stored opens, migrates and reads the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

import holdfast
from holdfast import ChatMessage, Event, Settings, State, TaskState
from holdfast.engines.hybrid import backpressure
from holdfast.engines.hybrid.backpressure import BackpressureLimits
from holdfast.errors import ConflictError, SchemaError
from tests.engines.postgres_database import connected
from tests.upgrade.filling import NOON, app
from tests.upgrade.reading import ANA, FAR_SECONDS, HOT, PLAIN, plain, read, read_hot, same
from tests.upgrade.restoring import answers, empty_valkey, landed_database, landed_valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")
SETTINGS = Settings(auto_migrate=True, channel_retention_seconds=FAR_SECONDS, ack_level="hot")
HOW: dict[str, Any] = {"tenant": HOT, "settings": SETTINGS, "background": False}


async def test_everything_on_postgres_reads_the_same() -> None:
    expected = answers()
    async with landed_database() as url:
        with pytest.raises(SchemaError, match="HOLDFAST_AUTO_MIGRATE=1"):
            await holdfast.open(url, settings=Settings())
        for _ in range(2):  # and again when nothing is left to migrate
            async with holdfast.open(url, settings=SETTINGS) as state:
                for tenant in PLAIN:
                    refs, key = expected["refs"][tenant], expected["keys"][tenant]
                    found = plain(await read(state.for_tenant(tenant), refs, key))
                    wanted = expected["plain"][tenant]
                    for part, value in wanted.items():
                        assert same(value, found[part]) == value, part


async def test_a_waiting_task_is_answered_and_completed() -> None:
    expected = answers()
    async with landed_database() as url, holdfast.open(url, settings=SETTINGS) as state:
        for tenant in PLAIN:
            one = state.for_tenant(tenant)
            waiting = [
                kept["record"]
                for kept in expected["plain"][tenant]["tasks"]["tasks"].values()
                if kept["record"]["state"] == "input-required"
            ]
            assert sorted(task["owner"] for task in waiting) == ["", "ana"]
            for task in waiting:
                view = one.for_owner(task["owner"])
                await view.tasks.respond(task["id"], ChatMessage.user("the long one"))
                await app().run_until_idle(one)
                done = await view.tasks.get(task["id"])
                assert done is not None
                assert done.state is TaskState.COMPLETED, done.note
                # The step that the landed version had done is not done again.
                assert done.messages[-1].text == "2 tugs to the long one"
                steps = [step.key.name for step in await one.tasks.steps(task["id"])]
                assert steps.count("order") == 1
                session = f"ctx-{task['owner'] or 'none'}"
                memory = view.memory("clerk", session_id=session)
                assert len(await memory.recent(types=["decision"])) == 1


async def test_a_retry_of_what_the_landed_version_stored_is_the_same() -> None:
    expected = answers()
    async with landed_database() as url, holdfast.open(url, settings=SETTINGS) as state:
        one, kept = state.for_tenant(PLAIN[0]), expected["plain"][PLAIN[0]]
        again = await one.episodes.append(
            [Event(ANA, "s2", "decision", {"enter": "14:30"}, id="e1", occurred_at=NOON)]
        )
        assert plain(again[0])["seq"] == 1
        sent = await one.channel("alerts").publish({"n": 1, "of": PLAIN[0]}, id="c1")
        assert plain(sent) == kept["channel"][1]
        task = await one.tasks.submit("hand", ChatMessage.user("watch the buoy"), submit_key="buoy")
        assert task.id in kept["tasks"]["tasks"]
        assert len(await one.episodes.recent(ANA, session_id="s2", limit=100)) == 3
        assert len(await one.channel("alerts").read()) == 3


async def test_what_was_not_flushed_is_flushed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers()
    # The fixture is older than anything that may wait: its age is not what is tested.
    marks = BackpressureLimits(soft_age_seconds=FAR_SECONDS, hard_age_seconds=FAR_SECONDS)
    monkeypatch.setattr(backpressure, "BackpressureLimits", lambda: marks)
    async with landed_database() as url, landed_valkey() as redis:
        # Without Redis: it migrates, and leaves what is there to those who have it.
        async with holdfast.open(url, **HOW):
            pass
        async with holdfast.open(url, redis=redis, **HOW) as state:
            assert await state.ops.pending_events() == expected["pending"] > 0
            await _reads_the_same(state, expected)
            await _remembers_ids(state, expected)
            assert await state.ops.pending_events() == expected["pending"]
            assert await state.ops.hybrid.consolidator.drain(limit_seconds=60)
            assert await state.ops.pending_events() == 0
            await _reads_the_same(state, expected)
            await _remembers_ids(state, expected)
        await _all_are_stored_once(url, expected)


async def test_an_upgrade_that_moves_sessions_flushes_first() -> None:
    expected = answers()
    async with landed_database() as url, landed_valkey() as redis:
        async with holdfast.open(url, redis=redis, **HOW) as state:
            assert await state.ops.pending_events() == 0
            await _reads_the_same(state, expected)
            await _remembers_ids(state, expected)
        await _all_are_stored_once(url, expected)


async def _all_are_stored_once(url: str, expected: dict[str, Any]) -> None:
    # With a Redis that knows nothing, all of it is read from Postgres.
    async with (
        empty_valkey() as redis,
        holdfast.open(url, redis=redis, **HOW) as durable,
    ):
        await _reads_the_same(durable, expected)
    async with connected(url) as connection:
        stored = await connection.fetch(
            "SELECT id FROM holdfast.events WHERE tenant = $1 ORDER BY id", HOT
        )
    ids = ["flushed", "h0", "h1", "h2", "m1", "m2", "waiting"]
    assert [row["id"] for row in stored] == ids


async def _remembers_ids(state: State, expected: dict[str, Any]) -> None:
    """An event that was flushed and one that waited are the same when they are sent again."""
    memory, kept = state.memory(ANA, session_id="old"), expected["hot"]["recent"]["old"]
    assert [one["id"] for one in kept] == ["flushed", "waiting"]
    for n, one in enumerate(kept):
        # The time is in the digest that the landed version left, so a retry needs the same one.
        at = datetime.fromisoformat(one["occurred_at"])
        again = await memory.record("note", {"n": n}, event_id=one["id"], occurred_at=at)
        assert plain(again) == one
        with pytest.raises(ConflictError):
            await memory.record("note", {"n": "another"}, event_id=one["id"], occurred_at=at)


async def _reads_the_same(state: State, expected: dict[str, Any]) -> None:
    found = plain(await read_hot(state))
    for part, value in expected["hot"].items():
        assert same(value, found[part]) == value, part
