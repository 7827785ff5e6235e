"""A time to live for all working states, on every engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import ALL_AGENTS, AgentId, Event, Settings
from holdfast.errors import NotSupportedError
from holdfast.spi import StatePatch
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import empty_database
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def database() -> AsyncIterator[str]:
    async with empty_database() as url:
        yield url


@pytest.fixture(params=["memory", "postgres", "redis", "hybrid"])
def wiring(request: pytest.FixtureRequest, database: str) -> dict[str, Any]:
    urls = {"memory": "memory:", "postgres": database, "redis": valkey().url, "hybrid": database}
    beside = {"redis": valkey().url} if request.param == "hybrid" else {}
    return {"url": urls[request.param], "tenant": new_ref(), **beside}


async def test_a_state_that_rests_expires_and_each_write_begins_its_time_anew(
    wiring: dict[str, Any],
) -> None:
    settings = Settings(state_ttl_seconds=3600, max_connections=6)
    async with holdfast.open(**wiring, settings=settings) as state:
        await state.short_term.set_state("s1", {"a": 1})
        first = (await state.short_term.snapshot("s1")).expires_at
        await state.short_term.update_state("s1", {"b": 2})
        later = (await state.short_term.snapshot("s1")).expires_at
        assert first is not None
        assert later is not None
        assert first < later
        await state.memory("a", session_id="s2").state.update({"a": 1})
        assert (await state.short_term.snapshot("s2")).expires_at is not None


async def test_a_write_that_gives_its_own_time_has_that(wiring: dict[str, Any]) -> None:
    settings = Settings(state_ttl_seconds=3600, max_connections=6)
    async with holdfast.open(**wiring, settings=settings) as state:
        await state.short_term.set_state("s1", {"a": 1})
        usual = (await state.short_term.snapshot("s1")).expires_at
        await state.short_term.set_state("s1", {"a": 1}, ttl_seconds=7200)
        own = (await state.short_term.snapshot("s1")).expires_at
        assert usual is not None
        assert own is not None
        assert (own - usual).total_seconds() > 3000


async def test_unless_it_is_set_no_state_expires(wiring: dict[str, Any]) -> None:
    async with holdfast.open(**wiring, settings=Settings(max_connections=6)) as state:
        await state.short_term.set_state("s1", {"a": 1})
        assert (await state.short_term.snapshot("s1")).expires_at is None


async def test_it_is_read_from_the_environment() -> None:
    found = Settings.from_environment({"HOLDFAST_STATE_TTL_SECONDS": "86400"})
    assert found.state_ttl_seconds == 86_400


async def test_a_patch_with_an_event_has_the_same_time_to_live_or_is_refused(
    wiring: dict[str, Any],
) -> None:
    settings = Settings(state_ttl_seconds=3600, max_connections=6)
    async with holdfast.open(**wiring, settings=settings) as state:
        if "episodes" not in state.engines:
            return
        event = Event(AgentId.parse("a1"), "s1", "note", {})
        patch = StatePatch("s1", {"a": 1})
        if "redis" in wiring:
            with pytest.raises(NotSupportedError, match=r"short_term\.update_state"):
                await state.episodes.append([event], patches=[patch])
            assert await state.episodes.recent(ALL_AGENTS) == []
            return
        await state.episodes.append([event], patches=[patch])
        assert (await state.short_term.snapshot("s1")).expires_at is not None
        ana = state.for_owner("ana")
        await ana.episodes.append([event], patches=[StatePatch("s1", {"mine": 1})])
        assert await ana.short_term.get_state("s1") == {"mine": 1}
        assert await state.short_term.get_state("s1") == {"a": 1}


async def test_states_in_redis_beside_another_engine_are_not_patched_with_events() -> None:
    async with holdfast.open("memory:", redis=valkey().url, tenant=new_ref()) as state:
        with pytest.raises(NotSupportedError):
            await state.episodes.append([], patches=[StatePatch("s1", {"a": 1})])
        assert await state.short_term.get_state("s1") == {}
