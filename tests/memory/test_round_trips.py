"""How often a warm memory asks its servers, counted on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

import holdfast
from holdfast import ALL_AGENTS, AgentId, Event
from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.agent_memory import AgentMemory
from holdfast.values.ids import new_ref
from holdfast.values.wakes import WakeStatus
from holdfast.wiring.settings import Settings
from tests.engines.hybrid import HybridHarness, valkey
from tests.engines.postgres import server
from tests.engines.postgres_database import connected

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass
class Counted:
    """A memory behind proxies."""

    memory: AgentMemory
    redis: RoundTrips
    postgres: RoundTrips

    def since(self, before: tuple[int, int]) -> tuple[int, int]:
        return self.redis.count - before[0], self.postgres.count - before[1]

    def counts(self) -> tuple[int, int]:
        return self.redis.count, self.postgres.count


@pytest_asyncio.fixture(loop_scope="session")
async def counted(hybrid: HybridHarness, tmp_path: Path) -> AsyncIterator[Counted]:
    """A warm session with a state, all of it flushed."""
    behind, redis, postgres = server(18), RoundTrips(), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    url = hybrid.url().replace(str(behind.folder), str(tmp_path))
    settings = Settings(ack_level="hot", background=False, tenant=f"{new_ref()}~")
    async with (
        redis.between(tmp_path / "redis", valkey().socket),
        postgres.between(listen, behind.folder / listen.name),
        holdfast.open(url, redis=f"unix://{tmp_path / 'redis'}", settings=settings) as state,
    ):
        memory = state.memory("writer/ana", session_id="s1")
        for at in range(30):
            await memory.record("note", {"text": f"low tide {at}"})
        await memory.state.update({"current_task": "tides"})
        await state.ops.hybrid.consolidator.drain()
        await memory.hydrate("tide")
        yield Counted(memory, redis, postgres)


async def test_a_warm_hydrate_asks_redis_once_and_postgres_not_at_all(counted: Counted) -> None:
    before = counted.counts()
    woken = await counted.memory.hydrate()
    assert (woken.status, woken.state) == (WakeStatus.WARM, {"current_task": "tides"})
    assert [one.payload["text"] for one in woken.recent] == [
        f"low tide {at}" for at in range(10, 30)
    ]
    assert counted.since(before) == (1, 0)


async def test_a_warm_hydrate_before_the_flush_asks_redis_once_too(counted: Counted) -> None:
    await counted.memory.record("note", {"text": "high tide"})
    await counted.memory.state.update({"current_task": "high tides"})
    before = counted.counts()
    woken = await counted.memory.hydrate()
    assert woken.recent[-1].payload == {"text": "high tide"}
    assert woken.state == {"current_task": "high tides"}
    assert counted.since(before) == (1, 0)


async def test_a_warm_hydrate_without_a_state_asks_postgres_once_for_it(counted: Counted) -> None:
    await counted.memory.state.clear()
    before = counted.counts()
    woken = await counted.memory.hydrate()
    assert (woken.status, woken.state, len(woken.recent)) == (WakeStatus.WARM, {}, 20)
    assert counted.since(before) == (1, 1)


async def test_record_and_the_partial_read_of_a_state_are_one_round_trip(counted: Counted) -> None:
    before = counted.counts()
    await counted.memory.record("note", {"text": "high tide"})
    assert counted.since(before) == (1, 0)
    before = counted.counts()
    assert await counted.memory.state.get(keys=["current_task"]) == {"current_task": "tides"}
    assert counted.since(before) == (1, 0)


async def test_many_states_are_one_round_trip(counted: Counted) -> None:
    short_term = counted.memory.state.store
    sessions = [f"s{n}" for n in range(20)]
    for session in sessions:
        await short_term.set_state(session, {"step": session})
    before = counted.counts()
    found = await short_term.get_many(sessions)
    assert [one.state["step"] for one in found] == sessions
    assert counted.since(before) == (1, 0)


async def test_a_hydrate_with_a_query_reads_both_at_the_same_time(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Redis does not answer before Postgres was asked to recall.
    asked = asyncio.Event()
    episodes = counted.memory._stores.episodes  # type: ignore[attr-defined]
    recall, look = episodes.recall, episodes._storage._inner._log.hot.look

    async def recalls(*args: object, **how: object) -> object:
        asked.set()
        return await recall(*args, **how)

    async def looks(session: str) -> object:
        await asked.wait()
        return await look(session)

    monkeypatch.setattr(episodes, "recall", recalls)
    monkeypatch.setattr(episodes._storage._inner._log.hot, "look", looks)
    woken = await counted.memory.hydrate("which tide?")
    assert (woken.status, len(woken.recalled)) == (WakeStatus.WARM, 5)


async def test_a_question_over_all_agents_asks_each_server_once_and_finds_what_is_not_flushed(
    counted: Counted, hybrid: HybridHarness
) -> None:
    log = counted.memory._stores.episodes  # type: ignore[attr-defined]
    where = {"text": {"$in": ["low tide 3", "low tide 7", "high tide"]}}
    ever = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))

    async def ask(*more: str) -> list[tuple[int, int]]:
        """Ask three times; how often each server was asked."""
        trips = []
        for name, how in (("recent", ()), ("between", ever), ("recall", ("tide",))):
            before = counted.counts()
            found = await getattr(log, name)(ALL_AGENTS, *how, where=where, limit=9)
            trips.append(counted.since(before))
            texts = sorted(getattr(one, "event", one).payload["text"] for one in found)
            assert texts == sorted(["low tide 3", "low tide 7", *more])
        return trips

    await ask()  # the first time, statements are prepared
    assert await ask() == [(1, 1)] * 3
    for agent in ("writer/ana", "writer/ben"):
        event = Event(AgentId.parse(agent), "s1", "note", {"text": "high tide", "by": agent})
        await log.append([event])
    # What is acknowledged is found before it is flushed; recall has it flushed, and indexed.
    assert (await ask("high tide", "high tide"))[:2] == [(1, 1)] * 2
    assert await ask("high tide", "high tide") == [(1, 1)] * 3
    async with connected(hybrid.url()) as connection:
        empty = (
            "SELECT count(*) FROM holdfast.events WHERE filterable IS NULL AND type <> 'message'"
        )
        assert await connection.fetchval(empty) == 0


async def test_a_state_that_is_not_in_redis_is_asked_for_once_and_restored(
    counted: Counted,
) -> None:
    assert valkey().ask("FLUSHALL") == "+OK"
    await counted.memory.state.get()  # the first time, the script is sent along
    assert valkey().ask("FLUSHALL") == "+OK"
    before = counted.counts()
    assert await counted.memory.state.get() == {"current_task": "tides"}
    # Nothing there, what was saved, its restoration, what is there now.
    assert counted.since(before) == (3, 1)
    before = counted.counts()
    await counted.memory.state.update({"current_task": "low tides"})
    # It is not registered any more; what it registers with comes with the refusal.
    assert counted.since(before) == (2, 1)
    before = counted.counts()
    await counted.memory.state.update({"current_task": "high tides"})
    assert counted.since(before) == (1, 0)
