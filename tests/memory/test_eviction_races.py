"""Whoever writes, reads, clears or loses a working state while it is evicted: step by step."""

from __future__ import annotations

import asyncio

import pytest

from tests.engines.hybrid import HybridHarness
from tests.memory.evictions import another, begun, empty_redis, hot_sessions, paused, rest
from tests.memory.scenes import flush

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("when", ["before the durable step", "after it"])
async def test_a_write_that_comes_while_its_state_is_evicted_stays(
    hybrid: HybridHarness, when: str
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    tenant, shard, eviction = await begun(hybrid)
    if when == "after it":
        assert await hybrid.states.evict(tenant, eviction) == {"s1"}
        await states.update_state("s1", {"step": 2})
        saved = {"s1"}
    else:
        await states.update_state("s1", {"step": 2})
        saved = await hybrid.states.evict(tenant, eviction)
        assert saved == set()
    assert await hybrid.clean.evict(tenant, shard, eviction, saved) == 0
    assert await hot_sessions() == {"s1"}
    # It was not saved. Whoever else finds it gone is told so, and its writer brings it back.
    empty_redis()
    assert (await another(hybrid).snapshot("s1")).as_of is not None
    empty_redis()
    assert await states.get_state("s1") == {"step": 2}
    await flush(hybrid)
    assert await rest(hybrid) == 1
    assert (await states.snapshot("s1")).state == {"step": 2}


async def test_a_writer_that_registered_just_before_the_eviction_registers_again(
    hybrid: HybridHarness,
) -> None:
    await hybrid.store("short_term").set_state("s1", {"step": 1})
    await flush(hybrid)
    with paused(hybrid.states, "register") as register:
        write = asyncio.create_task(another(hybrid).update_state("s1", {"step": 2}))
        await register.answered.wait()
        # Postgres knows it as a writer, and Redis does not have the write for a minute.
        await hybrid.elapse(60)
        tenant, shard, eviction = await begun(hybrid)
        saved = await hybrid.states.evict(tenant, eviction)
        assert saved == {"s1"}
        register.go_on.set()
        await write
        assert await hybrid.clean.evict(tenant, shard, eviction, saved) == 0
    assert register.calls == 2
    empty_redis()
    # The write is lost with Redis, and its writer is dead: that is not hidden.
    assert (await another(hybrid).snapshot("s1")).as_of is not None


async def test_a_state_stays_while_a_writer_registers_so_that_nobody_takes_it_for_lost(
    hybrid: HybridHarness,
) -> None:
    await hybrid.store("short_term").set_state("s1", {"step": 1})
    before = await another(hybrid).snapshot("s1")
    await flush(hybrid)
    writer = another(hybrid)
    tenant, shard, eviction = await begun(hybrid)
    saved = await hybrid.states.evict(tenant, eviction)
    assert saved == {"s1"}
    with paused(hybrid.states, "register") as register:
        write = asyncio.create_task(writer.update_state("s1", {"more": 1}))
        await register.answered.wait()
        # It began before the writer came, and so does not end; nor does another one begin.
        assert await hybrid.clean.evict(tenant, shard, eviction, saved) == 0
        assert await rest(hybrid) == 0
        assert await another(hybrid).snapshot("s1") == before
        register.go_on.set()
        await write
    assert await writer.get_state("s1") == {"step": 1, "more": 1}
    await flush(hybrid)
    await hybrid.elapse(60)
    assert await rest(hybrid) == 1
    assert await another(hybrid).get_state("s1") == {"step": 1, "more": 1}


async def test_a_writer_that_dies_while_it_registers_keeps_a_state_in_redis_for_a_minute(
    hybrid: HybridHarness,
) -> None:
    await hybrid.store("short_term").set_state("s1", {"step": 1})
    await flush(hybrid)
    with paused(hybrid.states, "register") as register:
        write = asyncio.create_task(another(hybrid).update_state("s1", {"more": 1}))
        await register.answered.wait()
        write.cancel()
        with pytest.raises(asyncio.CancelledError):
            await write
    assert await rest(hybrid) == 0
    await hybrid.elapse(60)
    assert await rest(hybrid) == 1
    found = await another(hybrid).snapshot("s1")
    assert (found.state, found.as_of) == ({"step": 1}, None)


async def test_a_writer_that_waits_through_a_whole_eviction_writes_to_the_restored_state(
    hybrid: HybridHarness,
) -> None:
    await hybrid.store("short_term").set_state("s1", {"step": 1})
    await flush(hybrid)
    writer = another(hybrid)
    with paused(hybrid.states, "register") as register:
        write = asyncio.create_task(writer.update_state("s1", {"more": 1}))
        await register.answered.wait()
        await hybrid.elapse(60)
        assert await rest(hybrid) == 1
        register.go_on.set()
        await write
    assert register.calls == 2
    assert await writer.get_state("s1") == {"step": 1, "more": 1}
    empty_redis()
    assert (await another(hybrid).snapshot("s1")).as_of is not None


@pytest.mark.parametrize("step", [1, 2])
async def test_redis_may_be_emptied_in_the_middle_of_an_eviction(
    hybrid: HybridHarness, step: int
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    before = await states.snapshot("s1")
    await flush(hybrid)
    tenant, shard, eviction = await begun(hybrid)
    if step == 1:
        empty_redis()
    saved = await hybrid.states.evict(tenant, eviction)
    if step == 2:
        empty_redis()
    other = another(hybrid)
    assert await other.snapshot("s1") == before
    # What was restored meanwhile is evicted once more, or stays: it is the same.
    await hybrid.clean.evict(tenant, shard, eviction, saved)
    assert await other.snapshot("s1") == before
    await states.update_state("s1", {"step": 2})
    await hybrid.clean.evict(tenant, shard, eviction, saved)
    assert await other.get_state("s1") == {"step": 2}


async def test_two_who_evict_the_same_state_do_not_hide_a_write_between_them(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    tenant, shard, first = await begun(hybrid)
    _, _, second = await begun(hybrid)
    assert second.number > first.number
    saved = await hybrid.states.evict(tenant, second)
    await states.update_state("s1", {"step": 2})
    assert await hybrid.states.evict(tenant, first) == set()
    assert await hybrid.clean.evict(tenant, shard, first, set()) == 0
    assert await hybrid.clean.evict(tenant, shard, second, saved) == 0
    empty_redis()
    assert (await another(hybrid).snapshot("s1")).as_of is not None


async def test_a_reader_that_read_postgres_before_an_eviction_brings_nothing_old_back(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    assert await rest(hybrid) == 1
    with paused(hybrid.states, "load") as load:
        read = asyncio.create_task(another(hybrid).snapshot("s1"))
        await load.answered.wait()
        await states.update_state("s1", {"step": 2})
        newest = await states.snapshot("s1")
        await flush(hybrid)
        assert await rest(hybrid) == 1
        load.go_on.set()
        assert await read == newest
    assert await states.snapshot("s1") == newest


async def test_a_reader_that_read_postgres_before_a_clear_brings_nothing_back(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    assert await rest(hybrid) == 1
    with paused(hybrid.states, "load") as load:
        read = asyncio.create_task(another(hybrid).get_state("s1"))
        await load.answered.wait()
        await states.clear("s1")
        load.go_on.set()
        assert await read == {}
    assert await states.get_state("s1") == {}
    await states.update_state("s1", {"again": 1})
    await flush(hybrid)
    assert await rest(hybrid) == 1
    assert await states.get_state("s1") == {"again": 1}
