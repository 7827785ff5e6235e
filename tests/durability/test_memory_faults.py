"""What was acknowledged is stored, once and in order, whatever was killed meanwhile."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import AgentId, Event, Settings
from holdfast.chaos.plan import Plan
from holdfast.chaos.run import ChaosRun
from holdfast.errors import BackPressureError, ConfigError
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]

SHORT = Plan(
    seconds=11,
    counts={
        "kill consolidator": 6,
        "kill valkey": 2,
        "kill postgres": 2,
        "freeze consolidator": 1,
        "cut valkey": 1,
        "cut postgres": 1,
        "silence valkey": 1,
        "deafen valkey": 1,
        "deafen postgres": 1,
        "fill valkey": 1,
    },
    parts=("memory",),
    sessions=10,
    until_fallback=True,
    seed=3,
)
LONG = Plan(
    seconds=120,
    counts={
        "kill consolidator": 30,
        "kill valkey": 5,
        "kill postgres": 5,
        "freeze consolidator": 5,
        "cut valkey": 5,
        "cut postgres": 5,
        "delay valkey": 3,
        "delay postgres": 3,
        "silence valkey": 3,
        "silence postgres": 3,
        "deafen valkey": 5,
        "deafen postgres": 5,
        "fill valkey": 3,
        "fill postgres": 3,
    },
    parts=("memory",),
    sessions=10,
    agent_pace_seconds=0.05,
    until_fallback=True,
)
COMMAND = "python -m pytest tests/durability/test_memory_faults.py --long"
RESULT = Path(__file__).parents[2] / "docs" / "faults" / "memory.json"
ANA = AgentId("writer", "ana")


@pytest.mark.parametrize("level", ["fsync", "committed"])
async def test_memory_survives_kill_9_of_consolidators_valkey_and_postgres(
    request: pytest.FixtureRequest, level: str
) -> None:
    long = request.config.getoption("--long")
    plan = dataclasses.replace(LONG if long else SHORT, level=level)
    verdict = await ChaosRun(plan).run()
    assert verdict.broken == []
    wanted = {kind: n for kind, n in plan.counts.items() if kind not in verdict.not_done}
    assert verdict.faults == wanted
    memory = verdict.memory
    assert memory is not None
    assert memory.stored == memory.acknowledged > plan.agent_processes * plan.sessions
    # No agent was killed: who dies between a grant and its use leaves a gap without a loss.
    assert (memory.duplicated, memory.out_of_order, memory.gaps_reported) == (0, 0, 0)
    assert memory.dead_letters == 0
    assert memory.fallback_events > 0, "no event went past Valkey, so that way was not tried"
    if long:
        _publish(level, {"plan": plan.to_json(), **verdict.to_json()})


def _publish(level: str, result: dict[str, Any]) -> None:
    facts = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    facts = {**facts, "command": COMMAND, level: result}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(facts, indent=2) + "\n")


async def test_recording_goes_on_without_postgres_up_to_the_mark_and_drains_after() -> None:
    postgres, valkey = PostgresServer(18), ValkeyServer()
    try:
        postgres.start()
        valkey.start()
        settings = Settings(auto_migrate=True, hard_mark=300)
        async with holdfast.open(postgres.url(), redis=valkey.url, settings=settings) as state:
            sent = await state.episodes.append([Event(ANA, "s1", "note", {"n": 0})])
            await asyncio.to_thread(postgres.kill)
            refused = None
            while refused is None:
                event = Event(ANA, "s1", "note", {"n": len(sent)})
                try:
                    sent += await state.episodes.append([event])
                except BackPressureError as error:
                    refused = error
                assert len(sent) <= 302
            assert len(sent) >= 300
            assert refused.retry_after_seconds > 0
            await asyncio.to_thread(postgres.start)
            async with asyncio.timeout(120):
                while await state.ops.pending_events():
                    await asyncio.sleep(0.05)
            found = await state.episodes.recent(ANA, session_id="s1", limit=1000)
            assert found == sent
    finally:
        valkey.remove()
        postgres.remove()


async def test_a_redis_that_evicts_is_refused_with_the_setting_to_change() -> None:
    valkey = ValkeyServer("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
    try:
        valkey.start()
        with pytest.raises(ConfigError, match="maxmemory-policy noeviction"):
            await holdfast.open("memory:", redis=valkey.url, settings=Settings())
    finally:
        valkey.remove()


async def test_without_redis_everything_goes_to_postgres_and_on_where_it_was_after() -> None:
    postgres, valkey = PostgresServer(18), ValkeyServer()
    try:
        postgres.start()
        valkey.start()
        settings = Settings(auto_migrate=True)
        async with holdfast.open(postgres.url(), redis=valkey.url, settings=settings) as state:
            sent = await state.episodes.append([Event(ANA, "s1", "note", {"n": 0})])
            await asyncio.to_thread(valkey.kill)
            for at in range(1, 4):
                sent += await state.episodes.append([Event(ANA, "s1", "note", {"n": at})])
            assert (await state.ops.health()).status == "down"
            await asyncio.to_thread(valkey.start)
            async with asyncio.timeout(60):
                while (await state.ops.health()).status != "ok":
                    await asyncio.sleep(0.05)
            for at in range(4, 7):
                sent += await state.episodes.append([Event(ANA, "s1", "note", {"n": at})])
            assert await state.episodes.recent(ANA, session_id="s1") == sent
            places = [(one.epoch, one.seq) for one in sent]
            assert places == sorted(set(places))
    finally:
        valkey.remove()
        postgres.remove()
