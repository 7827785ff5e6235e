"""Any mix of engines by URL: each attribute says its engine, and the agent's code is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import AgentId, ChatMessage, Settings, State
from holdfast.errors import NotSupportedError
from holdfast.values.ids import new_ref
from holdfast.wiring.connections import ATTRIBUTES
from holdfast.wiring.front_door import Opening
from tests.engines.postgres_database import migrated_database
from tests.engines.seaweedfs_server import s3_server
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = AgentId("planner", "a1")


@pytest_asyncio.fixture(scope="session")
async def database() -> AsyncIterator[str]:
    async with migrated_database() as url:
        yield url


def _opened(url: str, **how: Any) -> Opening:
    return holdfast.open(url, tenant=new_ref(), settings=Settings(), **how)


def _bucket() -> str:
    return s3_server().url(new_ref().lower().replace("_", "-").strip("-"))


async def _works(state: State) -> None:
    await state.short_term.update_state("s1", {"step": 1})
    assert await state.short_term.get_state("s1") == {"step": 1}
    await state.history.append(AGENT, ChatMessage.user("hello"), session_id="s1")
    [message] = await state.history.get_messages(AGENT, session_id="s1")
    assert message.text == "hello"
    await state.channel("alerts").publish({"level": "high"})
    assert [one.event for one in await state.channel("alerts").read()] == [{"level": "high"}]
    health = await state.ops.health()
    assert health.status == "ok"
    served = [attribute for engine in health.engines for attribute in engine.serves]
    assert sorted(served) == sorted(state.engines)


async def _keeps_blobs(state: State) -> None:
    ref = await state.blobs.store(b"bytes", content_type="text/plain")
    await state.blobs.pin(ref)
    assert await state.blobs.resolve(ref) == b"bytes"
    assert (await state.blobs.stat(ref)).pinned


async def test_redis_beside_postgres_serves_what_must_be_fast(database: str) -> None:
    async with _opened(database, redis=valkey().url) as state:
        await _works(state)
        assert state.engines["channel"] == "redis"
        hybrid = {one for one, engine in state.engines.items() if engine == "hybrid"}
        assert hybrid == {"history", "episodes", "short_term"}
        assert state.engines["tasks"] == "postgres"
        assert set(state.engines) == set(ATTRIBUTES)


async def test_an_object_store_beside_postgres_keeps_the_bytes(database: str) -> None:
    async with _opened(database, blobs=_bucket()) as state:
        await _works(state)
        await _keeps_blobs(state)
        assert state.engines["blobs"] == "objects"


async def test_all_of_them_at_once(database: str) -> None:
    async with _opened(database, redis=valkey().url, blobs=_bucket()) as state:
        await _works(state)
        await _keeps_blobs(state)
        assert set(state.engines.values()) >= {"postgres", "redis", "objects"}


async def test_disk_keeps_blobs_and_their_index_where_nothing_durable_is(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/blobs"
    async with holdfast.open("memory:", blobs=url, tenant="t1") as state:
        ref = await state.blobs.store(b"bytes")
    async with holdfast.open("memory:", blobs=url, tenant="t1") as state:
        assert await state.blobs.resolve(ref) == b"bytes"


async def test_redis_alone_serves_three_contracts_and_names_the_wiring_for_the_rest() -> None:
    async with _opened(valkey().url) as state:
        await _works(state)
        assert set(state.engines) == {"history", "short_term", "channel"}
        for attribute in sorted(set(ATTRIBUTES) - set(state.engines)):
            with pytest.raises(NotSupportedError, match="postgresql://"):
                getattr(state, attribute)
        with pytest.raises(NotSupportedError):
            _ = state.ops.work


async def test_redis_alone_with_an_object_store_keeps_blobs_too(tmp_path: Path) -> None:
    async with _opened(valkey().url, blobs=f"file://{tmp_path}/blobs") as state:
        await _keeps_blobs(state)


async def test_a_part_that_cannot_be_reached_closes_the_others(database: str) -> None:
    with pytest.raises(holdfast.errors.UnavailableError):
        await _opened(database, redis="redis://127.0.0.1:1")
