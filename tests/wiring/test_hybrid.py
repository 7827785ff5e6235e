"""Redis beside Postgres: which level an acknowledgement has, who consolidates, how it is."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio
from starlette.requests import Request

import holdfast
from holdfast import AgentId, Event, Settings
from holdfast.engines.redis.capabilities import Capabilities
from holdfast.engines.redis.engine import Redis
from holdfast.errors import ConfigError, NotSupportedError, UnknownSchemeError
from holdfast.server.caller import CALLER, Caller
from holdfast.server.health import metrics_endpoint
from holdfast.server.metrics import Metrics
from holdfast.spi.hybrid.hot_log import HotStats
from holdfast.values.ids import new_ref
from holdfast.wiring.hybrid import level_of
from tests.engines.hybrid import valkey
from tests.engines.postgres_database import migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")
FSYNC = {"appendonly": "yes", "appendfsync": "always"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def database() -> AsyncIterator[str]:
    async with migrated_database() as url:
        yield url


def _engine(**about: Any) -> Redis:
    """Of an engine only what its server says of itself matters here."""
    found = Redis.__new__(Redis)
    found.capabilities = Capabilities("Valkey", "9.1.0", **about)
    return found


@pytest.mark.parametrize(
    ("about", "settings", "level"),
    [
        (FSYNC, {}, "fsync"),
        ({"appendonly": "yes", "appendfsync": "everysec"}, {}, "committed"),
        ({"appendonly": "no"}, {}, "committed"),
        ({}, {}, "committed"),
        ({}, {"redis_level": "fsync"}, "fsync"),
        ({"appendonly": "no"}, {"redis_level": "fsync"}, "committed"),
        ({"appendonly": "no"}, {"ack_level": "hot"}, "hot"),
        (FSYNC, {"ack_level": "committed"}, "committed"),
    ],
    ids=str,
)
async def test_the_level_is_what_the_server_proves(
    about: dict[str, str], settings: dict[str, str], level: str
) -> None:
    assert level_of(Settings(**cast("Any", settings)), _engine(**about)) == level


async def test_a_level_that_is_not_proved_is_refused_with_the_setting_to_change() -> None:
    for about, change in (
        ({"appendonly": "no"}, "appendonly yes"),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "appendfsync always"),
        ({}, "CONFIG is refused"),
    ):
        with pytest.raises(ConfigError, match=change):
            level_of(Settings(ack_level="fsync"), _engine(**about))


async def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(UnknownSchemeError, match="HOLDFAST_ACK_LEVEL"):
        Settings(ack_level="maybe")
    with pytest.raises(UnknownSchemeError, match="HOLDFAST_REDIS_LEVEL"):
        Settings(redis_level="committed")


async def test_closing_takes_along_what_is_in_redis(database: str) -> None:
    tenant = new_ref()
    how: dict[str, Any] = {"redis": valkey().url, "settings": Settings(), "tenant": tenant}
    async with holdfast.open(database, **how) as state:
        assert {state.engines[one] for one in ("history", "episodes", "short_term")} == {"hybrid"}
        sent = await state.episodes.append([Event(ANA, "s1", "note", {"n": 1})])
        await state.short_term.set_state("s1", {"step": 1})
    async with holdfast.open(database, tenant=tenant, settings=Settings()) as durable:
        assert await durable.episodes.recent(ANA, session_id="s1") == sent


async def test_without_background_nothing_is_consolidated_here(database: str) -> None:
    tenant = new_ref()
    how: dict[str, Any] = {"redis": valkey().url, "tenant": tenant}
    async with holdfast.open(database, settings=Settings(background=False), **how) as state:
        sent = await state.episodes.append([Event(ANA, "s1", "note", {"n": 1})])
        assert await state.ops.pending_events() >= 1
    async with holdfast.open(database, settings=Settings(), background=False, **how) as again:
        assert await again.episodes.recent(ANA, session_id="s1") == sent
        assert await again.ops.hybrid.consolidator.drain(limit_seconds=30)
        assert await again.ops.pending_events() == 0


async def test_health_is_degraded_when_the_oldest_event_has_waited_half_the_time_to_live(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with holdfast.open(
        database, redis=valkey().url, settings=Settings(), background=False
    ) as state:
        assert (await state.ops.health()).status == "ok"

        async def late() -> HotStats:
            return HotStats(pending=7, oldest_seconds=1801)

        monkeypatch.setattr(state.ops.hybrid.hot, "stats", late)
        health = await state.ops.health()
        assert health.status == "degraded"
        [hybrid] = [one for one in health.engines if one.engine == "hybrid"]
        assert "7 events wait" in hybrid.detail
        assert set(hybrid.serves) == {"history", "episodes", "short_term"}
        names = dict(await state.ops.hybrid.samples())
        assert names["holdfast_consolidation_pending"] == 7
        assert names["holdfast_consolidation_ttl_headroom_ratio"] < 0.5


async def test_there_is_nothing_to_consolidate_without_a_redis() -> None:
    async with holdfast.open("memory:") as state:
        assert await state.ops.pending_events() == 0
        with pytest.raises(NotSupportedError, match="redis="):
            _ = state.ops.hybrid


async def test_marks_come_from_the_environment() -> None:
    found = Settings.from_environment(
        {"HOLDFAST_SOFT_MARK": "10", "HOLDFAST_HARD_MARK": "20", "HOLDFAST_BACKGROUND": "off"}
    )
    assert dataclasses.replace(found) == found
    assert (found.soft_mark, found.hard_mark, found.background) == (10, 20, False)
    with pytest.raises(ConfigError, match="HOLDFAST_HARD_MARK"):
        Settings.from_environment({"HOLDFAST_HARD_MARK": "many"})


def _asked() -> Request:
    """A request of a service that asks for no keys."""
    return Request({"type": "http", CALLER: Caller("default", "")})


async def test_the_service_exports_what_the_hot_log_counts(database: str) -> None:
    async with holdfast.open(
        database, redis=valkey().url, tenant=new_ref(), settings=Settings(), background=False
    ) as state:
        await state.memory("a1", session_id="s1").record("note", {"tide": "low"})
        answer = await metrics_endpoint(Metrics(), state)(_asked())
        text = bytes(answer.body).decode()
        assert "\nholdfast_consolidation_pending " in text
        assert "# TYPE holdfast_consolidation_flushed_total counter" in text
