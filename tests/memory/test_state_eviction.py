"""A working state that nobody uses leaves Redis, whole and without a trace of loss."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from holdfast.values.errors import VersionConflictError
from holdfast.values.wakes import WakeStatus
from tests.engines.hybrid import CommittedHybridHarness, HybridHarness
from tests.engines.postgres_database import as_keeper
from tests.memory.evictions import another, begun, empty_redis, hot_sessions, rest
from tests.memory.scenes import bare, event, flush

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Levels(HybridHarness):
    """What both levels are tested with."""

    unused_seconds = 3600


class CommittedLevels(CommittedHybridHarness):
    """The same, where each write waits for the commit."""

    unused_seconds = 3600


@pytest_asyncio.fixture(loop_scope="session", params=[Levels, CommittedLevels])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[HybridHarness]:
    """Both acknowledgement levels, and an hour until an unused state leaves."""
    harness: HybridHarness = request.param()
    await harness.open()
    yield harness
    await harness.close()


async def unused(*sessions: str, seconds: int) -> None:
    """Have the server itself believe that nobody has used these states for so long."""
    async with bare() as client:
        for session in sessions:
            [key] = await client.keys(f"*:st:{session}")
            left = await client.pttl(key)
            value = await client.dump(key)
            await client.restore(key, max(0, left), value, replace=True, idletime=seconds)


async def test_a_state_is_evicted_when_it_was_neither_written_nor_read_for_the_time(
    either: HybridHarness,
) -> None:
    states = either.store("short_term")
    for session in ("unused", "read", "written", "looked at"):
        await states.set_state(session, {"step": 1})
    await flush(either)
    await either.consolidator.run_once()
    assert len(await hot_sessions()) == 4
    await either.elapse(3601)
    names = ("unused", "read", "written", "looked%20at")
    await unused(*names, seconds=3601)
    await states.get_state("read", keys=["step"])
    await states.update_state("written", {"step": 2})
    await either.memory("writer/ana", session_id="looked at").hydrate()
    await either.consolidator.run_once()
    assert await hot_sessions() == {"read", "written", "looked%20at"}
    assert either.consolidator.metrics.evicted == 1
    # Each of the others has its hour from its last use on.
    await either.elapse(3601)
    await unused(*names[1:], seconds=3601)
    await either.consolidator.run_once()
    assert await hot_sessions() == set()
    assert either.consolidator.metrics.evicted == 4
    assert await states.get_state("written") == {"step": 2}


async def test_an_evicted_state_comes_back_with_the_same_value_and_version(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1, "text": "a ü \u0000"})
    await states.update_state("s1", {"step": 2}, delete_keys=["none"])
    before = await states.snapshot("s1")
    await flush(hybrid)
    for reader in (states, another(hybrid)):
        assert await rest(hybrid) == 1
        assert await hot_sessions() == set()
        assert await reader.snapshot("s1") == before
    assert await rest(hybrid) == 1
    assert await states.snapshot("s1", keys=["step"]) == type(before)({"step": 2}, before.version)
    assert await rest(hybrid) == 1
    with pytest.raises(VersionConflictError):
        await states.update_state("s1", {"step": 3}, expected_version=before.version - 1)
    await hybrid.elapse(60)  # so long it may still be going to write
    assert await rest(hybrid) == 1
    await states.update_state("s1", {"step": 3}, expected_version=before.version)
    after = await states.snapshot("s1")
    assert after.state == {**before.state, "step": 3}
    assert after.version > before.version
    await flush(hybrid)
    assert await rest(hybrid) == 1
    assert await another(hybrid).snapshot("s1") == after


async def test_an_eviction_is_no_loss_to_anybody_who_wakes_up(hybrid: HybridHarness) -> None:
    await hybrid.store("episodes").append([event("said")])
    await hybrid.store("short_term").set_state("s1", {"step": 1})
    await flush(hybrid)
    await hybrid.elapse(120)
    await hybrid.consolidator.run_once()
    await hybrid.elapse(7200)
    assert await hot_sessions() == set()
    hybrid.die()
    woken = await hybrid.memory("writer/ana", session_id="s1").hydrate()
    assert (woken.status, woken.gaps) == (WakeStatus.RESTORED, ())
    assert (woken.state, woken.state_as_of, woken.degraded) == ({"step": 1}, None, "")
    assert await rest(hybrid) == 1
    woken = await hybrid.memory("writer/ana", session_id="s1").hydrate()
    assert (woken.status, woken.gaps) == (WakeStatus.WARM, ())
    assert (woken.state, woken.state_as_of, woken.degraded) == ({"step": 1}, None, "")


async def test_a_state_that_is_not_saved_stays(hybrid: HybridHarness) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    await states.update_state("s1", {"step": 2})
    *_, eviction = await begun(hybrid)
    assert eviction.states == ()
    assert await states.get_state("s1") == {"step": 2}


async def test_a_state_that_postgres_does_not_have_stays(hybrid: HybridHarness) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    # As after a backup of Postgres was restored.
    async with as_keeper(hybrid.engine) as connection:
        await connection.execute("UPDATE holdfast.state_snapshots SET version = version - 1")
    assert await rest(hybrid) == 0
    assert await hot_sessions() == {"s1"}
    await hybrid.consolidator.run_once()
    assert hybrid.consolidator.metrics.failures == 0


async def test_a_loss_that_was_reported_is_still_reported_after_an_eviction(
    hybrid: HybridHarness,
) -> None:
    await hybrid.store("short_term").set_state("s1", {"step": 1})
    await flush(hybrid)
    await another(hybrid).update_state("s1", {"step": 2})
    empty_redis()
    reader = another(hybrid)
    seen = await reader.snapshot("s1")
    assert seen.as_of is not None
    assert await rest(hybrid) == 1
    assert await reader.snapshot("s1") == seen


async def test_a_state_with_a_time_to_live_keeps_its_expiry(hybrid: HybridHarness) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1}, ttl_seconds=600)
    await states.set_state("short", {"step": 1}, ttl_seconds=5)
    before = await states.snapshot("s1")
    await flush(hybrid)
    assert await rest(hybrid) == 2
    assert await states.snapshot("s1") == before
    assert await rest(hybrid) == 1
    await hybrid.elapse(10)
    assert await states.get_state("short") == {}
    await states.update_state("s1", {"step": 2})
    assert (await states.snapshot("s1")).expires_at > before.expires_at
    await flush(hybrid)
    assert await rest(hybrid) == 1
    await hybrid.elapse(601)
    assert await states.get_state("s1") == {}
    # What expired in Redis itself is forgotten there too.
    await states.set_state("s2", {"step": 1}, ttl_seconds=5)
    await flush(hybrid)
    await hybrid.elapse(10)
    assert await rest(hybrid) == 0
    async with bare() as client:
        assert await client.keys("*:clean") == []


@pytest.mark.parametrize("damage", ["version", "state", "set"])
async def test_damaged_values_do_not_stop_the_eviction(hybrid: HybridHarness, damage: str) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    await states.set_state("s2", {"step": 2})
    await flush(hybrid)
    async with bare() as client:
        [key] = await client.keys("*:st:s1")
        if damage == "version":
            await client.hset(key, "v", "seven")
        elif damage == "state":
            await client.set(key, "no hash")
        else:
            for one in await client.keys("*:clean"):
                await client.set(one, "no set")
    for _ in range(2):
        await rest(hybrid)
    assert await hot_sessions() == set()
    assert await states.get_state("s1") == {"step": 1}
    assert await states.get_state("s2") == {"step": 2}


async def test_redis_does_not_grow_with_the_sessions_that_were_opened(
    hybrid: HybridHarness,
) -> None:
    async def keys_after(first: int, count: int) -> int:
        for at in range(first, first + count):
            session = f"s{at}"
            await hybrid.store("episodes").append([event("said", session=session)])
            await hybrid.store("short_term").set_state(session, {"step": at})
        await flush(hybrid)
        await hybrid.elapse(3600)
        await hybrid.consolidator.run_once()
        await hybrid.elapse(3600)
        hybrid.die()
        for at in range(first, first + count):
            # Some are only looked at again.
            woken = await hybrid.memory("writer/ana", session_id=f"s{at}").hydrate()
            assert woken.state == {"step": at}
        await hybrid.elapse(3600)
        await hybrid.consolidator.run_once()
        await hybrid.elapse(3600)
        async with bare() as client:
            return int(await client.dbsize())

    # One tenant has a few keys in each of the sixteen shards, and no more.
    await keys_after(0, 100)
    few = await keys_after(100, 50)
    assert await keys_after(150, 100) == few
    assert few <= 16 * 4
