"""Redis beside Postgres has the same sealed bytes, and the consolidator needs no key."""

from __future__ import annotations

import pytest
import redis.asyncio

import holdfast
from holdfast import Settings
from holdfast.errors import ConfigError, SealedError
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import connected, empty_database
from tests.sealing.conftest import RING
from tests.sealing.test_sealed_state import AGENT, CANARY, fill, seen
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _in_redis(tenant: str) -> bytes:
    """All values of a tenant in Redis, read around the stores."""
    client = redis.asyncio.Redis.from_url(valkey().url)
    found = b""
    async for key in client.scan_iter(f"*{tenant}*"):
        found += key + (await client.dump(key) or b"")
    await client.aclose()
    return found


async def test_redis_and_what_is_flushed_from_it_are_sealed() -> None:
    settings, tenant = Settings(auto_migrate=True, max_connections=6), new_ref()
    async with empty_database() as url:
        async with holdfast.open(
            url, redis=valkey().url, tenant=tenant, settings=settings, seal=RING, background=False
        ) as state:
            board = await fill(state)
            found = await seen(state, board)
            assert found["state"] == {CANARY: [CANARY], "step": CANARY}
            hot = await _in_redis(tenant)
            assert b"holdfast.sealed" in hot
            assert CANARY.encode() not in hot
        # Another process without keys makes what is in Redis durable.
        async with holdfast.open(
            url, redis=valkey().url, tenant=tenant, settings=settings, background=False
        ) as keyless:
            assert await keyless.ops.hybrid.consolidator.drain()
            with pytest.raises(SealedError, match="HOLDFAST_SEAL"):
                await keyless.history.get_messages(AGENT, session_id="s1")
        async with connected(url) as connection:
            # Other tests may have left events in the same Valkey.
            mine = "SELECT body::text FROM holdfast.events WHERE tenant = $1"
            bodies = await connection.fetch(mine, tenant)
        assert len(bodies) == 2
        assert all(CANARY not in row[0] and "holdfast.sealed" in row[0] for row in bodies)
        async with holdfast.open(
            url, redis=valkey().url, tenant=tenant, settings=settings, seal=RING, background=False
        ) as state:
            again = await seen(state, board)
            assert again == found


async def test_redis_alone_cannot_be_sealed() -> None:
    with pytest.raises(ConfigError, match="postgresql://"):
        await holdfast.open(valkey().url, seal=RING)
