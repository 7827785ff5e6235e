"""How long Redis keeps a working state that nobody uses, where Postgres stands behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import redis.asyncio

import holdfast
from holdfast import Settings
from holdfast.errors import ConfigError
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import empty_database
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME = "HOLDFAST_HOT_STATE_SECONDS"
EVICTED = "holdfast_states_evicted_total"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def database() -> AsyncIterator[str]:
    async with empty_database() as url:
        yield url


def settings(**more: Any) -> Settings:
    return Settings(tenant=new_ref(), max_connections=6, **more)


async def keys(state: holdfast.State, kind: str) -> int:
    """How many keys of a kind the tenant has in Redis."""
    async with redis.asyncio.Redis.from_url(valkey().url) as client:
        return len(await client.keys(f"*:{state.tenant}:{kind}"))


async def evicted(state: holdfast.State) -> float:
    return dict(await state.ops.hybrid.samples())[EVICTED]


async def until_evicted(state: holdfast.State) -> None:
    """Wait until Redis has no state of the tenant any more."""
    async with asyncio.timeout(60):
        while await keys(state, "st:*"):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("level", ["hot", "committed"])
async def test_the_background_evicts_what_it_has_saved(database: str, level: str) -> None:
    how = settings(hot_state_seconds=0.001, ack_level=level)
    async with holdfast.open(database, redis=valkey().url, settings=how) as state:
        await state.short_term.set_state("s1", {"step": 1})
        await until_evicted(state)
        assert await evicted(state) > 0
        woken = await state.memory("writer/ana", session_id="s1").hydrate()
        assert (woken.state, woken.state_as_of, woken.degraded) == ({"step": 1}, None, "")
        await until_evicted(state)
        await state.short_term.update_state("s1", {"step": 2}, expected_version=woken.version)
        await until_evicted(state)
        assert await state.short_term.get_state("s1") == {"step": 2}


async def test_a_consolidator_elsewhere_evicts_too(database: str) -> None:
    how = settings(hot_state_seconds=0.001, background=False, ack_level="hot")
    async with (
        holdfast.open(database, redis=valkey().url, settings=how) as state,
        holdfast.open(database, redis=valkey().url, settings=how) as other,
    ):
        await state.short_term.set_state("s1", {"step": 1})
        before = await state.short_term.snapshot("s1")
        async with asyncio.timeout(60):
            while await keys(state, "st:*"):
                await other.ops.hybrid.consolidator.run_once(tenants=[how.tenant])
        assert await evicted(other) == 1
        assert await other.short_term.snapshot("s1") == before
        assert await state.short_term.snapshot("s1") == before


async def test_zero_switches_it_off(database: str) -> None:
    how = settings(hot_state_seconds=0, background=False, ack_level="hot")
    async with holdfast.open(database, redis=valkey().url, settings=how) as state:
        await state.short_term.set_state("s1", {"step": 1})
        for _ in range(3):
            await state.ops.hybrid.consolidator.run_once(tenants=[how.tenant])
        assert await keys(state, "st:*") == 1
        work = await state.ops.hybrid.hot.work(rested_seconds=900, unused_seconds=1e-6)
        assert how.tenant not in {tenant for tenant, *_ in work.clean}
        assert await evicted(state) == 0


async def test_a_state_with_a_time_to_live_leaves_redis_before_it_expires(database: str) -> None:
    how = settings(hot_state_seconds=0.001, state_ttl_seconds=3600, ack_level="hot")
    async with holdfast.open(database, redis=valkey().url, settings=how) as state:
        await state.short_term.set_state("s1", {"step": 1})
        before = await state.short_term.snapshot("s1")
        assert before.expires_at is not None
        await until_evicted(state)
        assert await state.short_term.snapshot("s1") == before


async def test_it_is_an_hour_unless_the_environment_says_otherwise() -> None:
    assert Settings().hot_state_seconds == 3600
    assert Settings.from_environment({NAME: "1.5"}).hot_state_seconds == 1.5
    assert Settings.from_environment({NAME: "0"}).hot_state_seconds == 0


@pytest.mark.parametrize("text", ["-1", "-0.5", "soon", "nan", "inf", "1e12", "1h"])
async def test_a_bad_value_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match=f"{NAME} must be a number of seconds above 0, or 0"):
        Settings.from_environment({NAME: text})


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "soon", None])
async def test_a_bad_value_in_code_is_one_too(value: Any) -> None:
    with pytest.raises(ConfigError, match=NAME):
        Settings(hot_state_seconds=value)
