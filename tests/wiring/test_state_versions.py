"""Versions of working states: kept, erased and purged on every wiring that has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import AgentId, Event, Settings
from holdfast.errors import NotFoundError, NotSupportedError
from holdfast.spi import StatePatch
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import empty_database
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")
SETTINGS = Settings(state_versions=10, max_connections=6)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def database() -> AsyncIterator[str]:
    async with empty_database() as url:
        yield url


@pytest.fixture(params=["memory", "postgres", "hybrid"])
def wiring(request: pytest.FixtureRequest, database: str) -> dict[str, Any]:
    url = "memory:" if request.param == "memory" else database
    beside = {"redis": valkey().url} if request.param == "hybrid" else {}
    return {"url": url, "tenant": new_ref(), **beside}


async def test_the_versions_of_an_owner_are_the_owners_alone(wiring: dict[str, Any]) -> None:
    async with holdfast.open(**wiring, settings=SETTINGS) as state:
        ana, bob = state.for_owner("ana").short_term, state.for_owner("bob").short_term
        first = await ana.set_state("s1", {"a": 1})
        await ana.set_state("s1", {"a": 2})
        assert await bob.versions("s1") == []
        with pytest.raises(NotFoundError) as caught:
            await bob.snapshot("s1", at=first)
        assert caught.value.key == f"s1@{first}"
        assert (await ana.snapshot("s1", at=first)).state == {"a": 1}
        assert len(await ana.versions("s1")) == 2


async def test_an_erasure_deletes_the_versions_of_a_state(wiring: dict[str, Any]) -> None:
    async with holdfast.open(**wiring, settings=SETTINGS) as state:
        for owner in ("ana", "bob"):
            store = state.for_owner(owner).short_term
            await store.set_state("s1", {"a": 1})
            await store.set_state("s1", {"a": 2})
        await state.erase(subject="ana")
        assert await state.for_owner("ana").short_term.versions("s1") == []
        await state.for_owner("ana").short_term.set_state("s1", {"new": 1})
        assert len(await state.for_owner("ana").short_term.versions("s1")) == 1
        assert len(await state.for_owner("bob").short_term.versions("s1")) == 2


async def test_a_patch_with_an_event_makes_a_version(wiring: dict[str, Any]) -> None:
    async with holdfast.open(**wiring, settings=SETTINGS) as state:
        event = Event(AgentId.parse("planner"), "s1", "note", {"n": 1})
        patch = StatePatch("s1", {"step": 1})
        if "redis" in wiring:
            with pytest.raises(NotSupportedError):
                await state.episodes.append([event], patches=[patch])
            return
        [version] = (await state.episodes.append([event], patches=[patch])).versions
        later = await state.short_term.update_state("s1", {"step": 2})
        assert [one.version for one in await state.short_term.versions("s1")] == [later, version]
        assert (await state.short_term.snapshot("s1", at=version)).state == {"step": 1}


async def test_a_store_without_the_setting_deletes_what_was_kept_with_its_next_write(
    database: str,
) -> None:
    tenant = new_ref()
    async with holdfast.open(database, tenant=tenant, settings=SETTINGS) as state:
        await state.short_term.set_state("s1", {"a": 1})
    without = Settings(max_connections=6)
    async with holdfast.open(database, tenant=tenant, settings=without) as state:
        assert len(await state.short_term.versions("s1")) == 1
        await state.short_term.set_state("s1", {"a": 2})
        assert await state.short_term.versions("s1") == []


async def test_redis_without_postgres_refuses_to_keep_versions() -> None:
    with pytest.raises(NotSupportedError, match="HOLDFAST_STATE_VERSIONS"):
        async with holdfast.open(valkey().url, tenant=new_ref(), settings=SETTINGS) as state:
            await state.short_term.get_state("s1")
