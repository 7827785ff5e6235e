"""Sessions and states that come back to Redis: once, and never what is cleared."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.values.wakes import WakeStatus
from tests.engines.hybrid import HybridHarness, valkey
from tests.memory.scenes import ANA, event, flush, gaps, notes, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_thousand_wake_ups_bring_a_cold_session_back_once(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    sent = await store.append([event("one"), event("two")])
    await flush(hybrid)
    await hybrid.elapse(120)
    await hybrid.consolidator.run_once()
    await hybrid.elapse(7200)
    before = hybrid.consolidator.metrics.loaded
    woken = await asyncio.gather(*(hybrid.wakes().wake("s1") for _ in range(1000)))
    assert hybrid.consolidator.metrics.loaded == before + 1
    assert all(one.events == sent for one in woken)
    assert {one.status for one in woken} <= {WakeStatus.WARM, WakeStatus.RESTORED}
    assert await gaps(hybrid) == 0


async def test_a_session_that_goes_on_while_it_is_raised_keeps_its_numbers_and_its_window(
    hybrid: HybridHarness,
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    log = hybrid.log(tenant)
    await store.append([event("first")])
    window = await log.hot.window("s1")
    grant = await log.durable.load("s1", None, window.known)
    assert grant is not None
    tail = await log.durable.tail("s1", 101)
    await store.append([event("second"), event("third")])
    await flush(hybrid)
    await store.append([event("fourth")])
    await log.hot.load("s1", grant, floor=(0, 0), entries=tail)
    await store.append([event("fifth")])
    expected = ["first", "second", "third", "fourth", "fifth"]
    found = await store.recent(ANA, session_id="s1")
    assert notes(found) == expected
    assert [one.seq for one in found] == [1, 2, 3, 4, 5]
    await flush(hybrid)
    assert await stored(hybrid) == found
    assert await hybrid.durable.dead_letters(tenant, limit=10) == []
    assert await gaps(hybrid) == 0


async def test_a_refill_never_brings_back_what_is_cleared_meanwhile(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    await store.append([event("old"), event("older")])
    await flush(hybrid)
    await hybrid.elapse(120)
    await hybrid.consolidator.run_once()
    await hybrid.elapse(7200)
    durable = hybrid.log(tenant).durable
    read, begun = durable.tail, asyncio.Event()

    async def slowly(session: str, limit: int) -> object:
        found = await read(session, limit)
        begun.set()
        await asyncio.sleep(0.1)
        return found

    monkeypatch.setattr(durable, "tail", slowly)
    refill = asyncio.create_task(store.append([event("new")]))
    await begun.wait()
    assert await store.clear("s1") >= 2
    await refill
    assert set(notes(await store.recent(ANA, session_id="s1"))) <= {"new"}


async def test_a_lost_state_is_restored_before_it_is_written_to(hybrid: HybridHarness) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"a": 1}, ttl_seconds=3600)
    await flush(hybrid)
    before = await states.snapshot("s1")
    assert valkey().ask("FLUSHALL") == "+OK"
    await states.update_state("s1", {"b": 2})
    after = await states.snapshot("s1")
    assert after.state == {"a": 1, "b": 2}
    assert after.version > before.version
    assert after.expires_at is not None
    await states.clear("s1")
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {}


async def test_an_expired_state_is_not_brought_back_in_an_older_version(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"old": 1})
    await flush(hybrid)
    await states.set_state("s1", {"new": 2}, ttl_seconds=60)
    await hybrid.elapse(61)
    assert await states.get_state("s1") == {}
    await flush(hybrid)
    assert await states.get_state("s1") == {}
