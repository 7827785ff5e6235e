"""A session in which Redis is behind, since its writer died before it advanced Redis."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import Settings
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer
from tests.engines.hybrid import HybridHarness
from tests.memory.scenes import ANA, event, flush, notes, stored
from tests.memory.test_without_redis import redis_down

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_consolidator_lets_redis_catch_up_so_that_others_read_what_was_acknowledged(
    hybrid: HybridHarness,
) -> None:
    await hybrid.store("episodes").append([event("before")])
    await flush(hybrid)
    with redis_down(hybrid):
        await hybrid.store("episodes").append([event("aside")])
    await hybrid.reopen()
    await hybrid.consolidator.run_once()
    store = hybrid.store("episodes")
    assert notes(await store.recent(ANA, session_id="s1")) == ["before", "aside"]
    await store.append([event("after")])
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["before", "aside", "after"]
    assert all(
        tenant != hybrid._prefix + "default"
        for tenant, _, _ in await hybrid.durable.behind(limit=1000)
    )


async def test_a_process_that_opens_later_goes_on_behind_what_was_acknowledged() -> None:
    postgres, valkey = PostgresServer(18), ValkeyServer()
    settings = Settings(auto_migrate=True)
    try:
        postgres.start()
        valkey.start()
        opening = holdfast.open(
            postgres.url(), redis=valkey.url, settings=settings, background=False
        )
        async with opening as state:
            await state.episodes.append([event("before")])
            valkey.kill()
            await state.episodes.append([event("aside")])
            valkey.start()
        opening = holdfast.open(
            postgres.url(), redis=valkey.url, settings=settings, background=False
        )
        async with opening as state:
            woken = await state.memory(ANA, session_id="s1").hydrate()
            assert notes(woken.recent) == ["before", "aside"]
            await state.episodes.append([event("after")])
            found = await state.episodes.recent(ANA, session_id="s1")
            assert notes(found) == ["before", "aside", "after"]
    finally:
        valkey.remove()
        postgres.remove()
