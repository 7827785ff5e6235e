"""What is left of the hot path when the power of Valkey fails: a simulation, by its own fsyncs."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import AgentId, Event, Settings
from holdfast.testing.postgres_server import PostgresServer
from tests.durability.power_cut import COMPILER, Cut, MainsServer

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(600),
    pytest.mark.skipif(COMPILER is None, reason="the fsync log is built from C: install cc"),
]
ANA = AgentId("writer", "ana")
RESULT = Path(__file__).parents[2] / "docs" / "faults" / "power-cut.json"
LONG_CUTS = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was acknowledged before a cut, when, and what is left of it after."""

    cut: Cut
    cut_at: float
    acknowledged: dict[str, float]
    kept: list[str]

    @property
    def lost(self) -> list[str]:
        return [one for one in self.acknowledged if one not in set(self.kept)]

    @property
    def window_seconds(self) -> float:
        """From the first acknowledgement that is lost until the cut."""
        return self.cut_at - min((self.acknowledged[one] for one in self.lost), default=self.cut_at)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def postgres() -> AsyncIterator[PostgresServer]:
    server = PostgresServer(18)
    try:
        await asyncio.to_thread(server.start)
        yield server
    finally:
        server.remove()


def _opened(
    postgres: PostgresServer, mains: MainsServer, settings: Settings
) -> AbstractAsyncContextManager[holdfast.State]:
    redis = mains.valkey.url
    return holdfast.open(postgres.url(), redis=redis, settings=settings, background=False)


async def _cut(
    postgres: PostgresServer, folder: Path, *, level: str, fsync: str, seconds: float
) -> Outcome:
    """Record with nobody to consolidate, cut the power, start again, and see what is there."""
    mains = MainsServer(folder, fsync=fsync)
    session = f"{level}-{folder.name}"
    settings = Settings(auto_migrate=True, ack_level=level, tenant=session)
    acknowledged: dict[str, float] = {}
    try:
        await asyncio.to_thread(mains.start)
        async with _opened(postgres, mains, settings) as state:
            end = time.monotonic() + seconds
            while time.monotonic() < end or mains.syncs < 3:
                event = Event(ANA, session, "note", {"number": len(acknowledged)})
                await state.episodes.append([event])
                acknowledged[event.id] = time.monotonic()
            cut_at = time.monotonic()
            cut = mains.cut()
        await asyncio.to_thread(mains.valkey.start)
        async with _opened(postgres, mains, settings) as state:
            await state.ops.hybrid.consolidator.drain()
        async with holdfast.open(postgres.url(), settings=settings) as durable:
            found = await durable.episodes.recent(ANA, session_id=session, limit=1_000_000)
        return Outcome(cut, cut_at, acknowledged, [event.id for event in found])
    finally:
        mains.valkey.remove()


def _cuts(request: pytest.FixtureRequest) -> list[float]:
    """How long to record before each cut: at any moment of the second between two syncs."""
    if not request.config.getoption("--long"):
        return [0.3]
    own = random.Random(1)  # noqa: S311 - only how long things take
    return [own.uniform(2.0, 4.0) for _ in range(LONG_CUTS)]


async def test_at_level_fsync_a_power_cut_loses_nothing(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path_factory: Any
) -> None:
    outcomes = []
    for seconds in _cuts(request):
        folder = tmp_path_factory.mktemp("mains")
        outcomes.append(
            await _cut(postgres, folder, level="fsync", fsync="always", seconds=seconds)
        )
        assert outcomes[-1].kept == list(outcomes[-1].acknowledged)
    _publish(request, "fsync", outcomes)


async def test_at_level_hot_with_everysec_a_power_cut_loses_only_what_came_after_the_last_syncs(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path_factory: Any
) -> None:
    outcomes = []
    for seconds in _cuts(request):
        folder = tmp_path_factory.mktemp("mains")
        outcome = await _cut(postgres, folder, level="hot", fsync="everysec", seconds=seconds)
        outcomes.append(outcome)
        assert outcome.kept == list(outcome.acknowledged)[: len(outcome.kept)]
        before = [one for one, at in outcome.acknowledged.items() if at < outcome.cut.synced_at]
        assert before, "nothing was acknowledged before the syncs, so nothing was proved"
        assert set(before) <= set(outcome.kept)
    _publish(request, "hot", outcomes)


async def test_what_is_committed_after_a_power_cut_is_in_the_log(
    postgres: PostgresServer, tmp_path_factory: Any
) -> None:
    mains = MainsServer(tmp_path_factory.mktemp("mains"), fsync="everysec")
    settings = Settings(auto_migrate=True, ack_level="committed", tenant="committed")
    written: list[str] = []

    async def write(state: holdfast.State, count: int) -> None:
        for _ in range(count):
            event = Event(ANA, "s1", "note", {"number": len(written)})
            await state.episodes.append([event])
            written.append(event.id)

    try:
        await asyncio.to_thread(mains.start)
        async with _opened(postgres, mains, settings) as state:
            while mains.syncs < 2:
                await write(state, 1)
            await write(state, 20)
            mains.cut()
        await asyncio.to_thread(mains.valkey.start)
        async with _opened(postgres, mains, settings) as state:
            await write(state, 20)
            near = await state.episodes.recent(ANA, session_id="s1", limit=30)
            assert [event.id for event in near] == written[-30:]
        async with holdfast.open(postgres.url(), settings=settings) as durable:
            found = await durable.episodes.recent(ANA, session_id="s1", limit=1_000_000)
        assert [event.id for event in found] == written
    finally:
        mains.valkey.remove()


def _publish(request: pytest.FixtureRequest, level: str, outcomes: list[Outcome]) -> None:
    if not request.config.getoption("--long"):
        return
    command = "pytest tests/durability/test_power_cut.py --long"
    facts = json.loads(RESULT.read_text()) if RESULT.exists() else {"command": command}
    windows = [outcome.window_seconds for outcome in outcomes]
    facts[level] = {
        "appendfsync": "always" if level == "fsync" else "everysec",
        "cuts": len(outcomes),
        "acknowledged": sum(len(outcome.acknowledged) for outcome in outcomes),
        "lost": sum(len(outcome.lost) for outcome in outcomes),
        "window_seconds": {
            "p50": round(statistics.median(windows), 2),
            "max": round(max(windows), 2),
        },
    }
    RESULT.write_text(json.dumps(facts, indent=2) + "\n")
