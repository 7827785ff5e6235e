"""After a loss of Redis: restored whole, with gaps, or as of a time, and never one for another."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import holdfast
from holdfast import Settings
from holdfast.engines.postgres.wake import PostgresWake
from holdfast.values.failpoints import failpoint
from holdfast.values.wakes import Gap, WakeStatus
from tests.engines.hybrid import CommittedHybridHarness, HybridHarness, valkey
from tests.memory.scenes import ANA, event, flush, gaps, notes, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")


def empty_redis() -> None:
    """As ``FLUSHALL``, or a restart without AOF."""
    assert valkey().ask("FLUSHALL") == "+OK"


async def test_a_session_that_lost_nothing_is_restored_whole_and_one_that_lost_five_is_not(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("whole", session="whole"), event("first", session="lost")])
    await flush(hybrid)
    # Another process writes five more to one of them, and dies with Redis.
    mine = (hybrid.writer, dict(hybrid.logs), dict(hybrid.kept))
    hybrid.die()
    lost = await hybrid.store("episodes").append(
        [event(f"{at}", session="lost") for at in range(5)]
    )
    hybrid.writer, hybrid.logs, hybrid.kept = mine
    empty_redis()
    whole = await hybrid.memory("writer/ana", session_id="whole").hydrate()
    assert (whole.status, whole.gaps, whole.state_as_of) == (WakeStatus.RESTORED, (), None)
    broken = await hybrid.memory("writer/ana", session_id="lost").hydrate()
    assert broken.status is WakeStatus.GAP
    [gap] = broken.gaps
    assert gap.from_seq == lost[0].seq
    assert gap.to_seq >= lost[-1].seq
    assert not gap.certain  # how many of the numbers were used died with the process
    assert (await hybrid.wakes().wake("whole")).status is WakeStatus.WARM
    assert (await hybrid.wakes().wake("lost")).gaps == (gap,)


async def test_a_process_that_lives_on_loses_nothing_and_says_so_for_others(
    hybrid: HybridHarness,
) -> None:
    await hybrid.store("episodes").append([event("flushed")])
    await flush(hybrid)
    await hybrid.store("episodes").append([event("in Redis alone")])
    mine = (hybrid.writer, dict(hybrid.logs), dict(hybrid.kept))
    hybrid.die()
    empty_redis()
    other = await hybrid.memory("writer/ana", session_id="s1").hydrate()
    assert (other.status, notes(other.recent)) == (WakeStatus.GAP, ["flushed"])
    tenant = hybrid._prefix + "default"
    # The writer hears of it within a second, writes what it remembers, and nothing is missing.
    writer, logs, _ = mine
    assert await hybrid.durable.unsettled(writer) == [(tenant, "s1")]
    await logs[tenant].settle("s1")
    assert await hybrid.durable.unsettled(writer) == []
    assert notes(await stored(hybrid)) == ["flushed", "in Redis alone"]
    assert await gaps(hybrid) == 0
    again = await hybrid.memory("writer/ana", session_id="s1").hydrate()
    assert again.gaps == ()
    assert notes(again.recent) == ["flushed", "in Redis alone"]


async def test_at_level_committed_nothing_is_ever_reported_as_lost() -> None:
    harness = CommittedHybridHarness()
    await harness.open()
    try:
        store = harness.store("episodes")
        await store.append([event("one"), event("two", session="s2")])
        await harness.store("short_term").set_state("s1", {"step": 1})
        harness.die()
        empty_redis()
        woken = await harness.memory("writer/ana", session_id="s1").hydrate()
        assert (woken.status, woken.gaps, woken.state_as_of) == (WakeStatus.RESTORED, (), None)
        assert (notes(woken.recent), woken.state) == (["one"], {"step": 1})
        with failpoint("append.after_hot", empty_redis):
            await harness.store("episodes").append([event("three")])
        woken = await harness.memory("writer/ana", session_id="s1").hydrate()
        assert (woken.gaps, notes(woken.recent)) == ((), ["one", "three"])
        assert await gaps(harness) == 0
    finally:
        await harness.close()


async def test_an_agent_wakes_with_the_losses_of_all_its_sessions(hybrid: HybridHarness) -> None:
    memory = hybrid.memory("writer/ana")
    assert (await memory.hydrate()).status is WakeStatus.NEW
    await hybrid.store("episodes").append([event("one"), event("two", session="s2")])
    await flush(hybrid)
    assert (await memory.hydrate()).status is WakeStatus.WARM
    empty_redis()
    woken = await memory.hydrate()
    assert (woken.status, woken.gaps) == (WakeStatus.RESTORED, ())
    assert (await memory.hydrate()).status is WakeStatus.WARM
    await hybrid.store("episodes").append([event("lost", session="s2")])
    hybrid.die()
    empty_redis()
    woken = await hybrid.memory("writer/ana").hydrate()
    assert woken.status is WakeStatus.GAP
    assert [(gap.session_id, gap.certain) for gap in woken.gaps] == [("s2", False)]
    alone = PostgresWake(hybrid.engine, tenant=hybrid._prefix + "default")
    found = await alone.wake_all(ANA)
    assert found is not None
    assert found.gaps == woken.gaps
    hybrid.breaker.down_until = float("inf")
    down = await hybrid.memory("writer/ana").hydrate()
    hybrid.breaker.down_until = 0.0
    assert (down.status, down.gaps) == (WakeStatus.GAP, woken.gaps)
    assert "all sessions of writer/ana" in down.degraded or "session agent:" in down.degraded


async def test_numbers_that_are_missing_between_stored_ones_are_a_certain_gap(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("episodes")
    await store.append([event(f"{at}") for at in range(3)])
    log = hybrid.log(hybrid._prefix + "default")
    second = (await log.hot.window("s1")).entries[1]
    hybrid.die()
    prefix = f"hf:{{s{log.hot.shard_of('s1'):02}}}"
    [key] = [
        one.decode() for one in await hybrid.redis.command("", "keys", f"{prefix}:*:hot", safe=True)
    ]
    await hybrid.redis.command(key, "xdel", key, second.mark, safe=True)
    await flush(hybrid)
    assert valkey().ask("FLUSHALL") == "+OK"
    woken = await hybrid.wakes().wake("s1")
    assert woken.gaps[0] == Gap(1, 2, 2, certain=True)


async def test_a_lost_state_says_as_of_when_it_is(hybrid: HybridHarness) -> None:
    states, memory = hybrid.store("short_term"), hybrid.memory("writer/ana", session_id="s1")
    before = datetime.now(UTC)
    await states.set_state("s1", {"step": 1})
    await states.set_state("other", {"whole": 1})
    await flush(hybrid)
    after = datetime.now(UTC)
    mine = (hybrid.writer, dict(hybrid.logs), dict(hybrid.kept))
    hybrid.die()
    await hybrid.store("short_term").update_state("s1", {"step": 2})
    await hybrid.store("short_term").update_state("never saved", {"step": 1})
    hybrid.writer, hybrid.logs, hybrid.kept = mine
    empty_redis()
    woken = await memory.hydrate()
    assert woken.state == {"step": 1}
    assert woken.state_as_of is not None
    assert before <= woken.state_as_of <= after
    again = await hybrid.store("short_term").snapshot("s1")
    assert again.as_of == woken.state_as_of
    whole = await hybrid.store("short_term").snapshot("other")
    assert (whole.state, whole.as_of) == ({"whole": 1}, None)
    lost = await hybrid.store("short_term").snapshot("never saved")
    assert (lost.state, lost.as_of is not None) == ({}, True)
    await hybrid.store("short_term").update_state("s1", {"step": 3})
    assert (await memory.hydrate()).state_as_of is None


async def test_a_process_that_closes_with_everything_flushed_leaves_no_doubt(
    hybrid: HybridHarness,
) -> None:
    tenant = hybrid._prefix + "default"
    settings = Settings(tenant=tenant, ack_level="hot")
    async with holdfast.open(hybrid.url(), redis=valkey().url, settings=settings) as state:
        await state.memory("writer/ana", session_id="s1").record("note", {"note": "flushed"})
        await state.short_term.set_state("s1", {"step": 1})
    settings = Settings(tenant=tenant, ack_level="hot", background=False)
    async with holdfast.open(hybrid.url(), redis=valkey().url, settings=settings) as state:
        await state.memory("writer/ana", session_id="s2").record("note", {"note": "in Redis alone"})
    empty_redis()
    async with holdfast.open(hybrid.url(), redis=valkey().url, settings=settings) as state:
        woken = await state.memory("writer/ana", session_id="s1").hydrate()
        assert (woken.status, woken.gaps, woken.state_as_of) == (WakeStatus.RESTORED, (), None)
        assert woken.state == {"step": 1}
        woken = await state.memory("writer/ana", session_id="s2").hydrate()
        assert (woken.status, woken.recent) == (WakeStatus.GAP, [])


async def test_an_append_that_was_on_its_way_during_a_loss_is_not_missed(
    hybrid: HybridHarness,
) -> None:
    store, log = hybrid.store("episodes"), hybrid.log(hybrid._prefix + "default")
    await store.append([event("first")])
    await flush(hybrid)

    def lost_and_settled() -> None:
        # Its answer is on the way while Redis is emptied, and the session is found whole.
        empty_redis()
        log._grants.settled += 1

    with failpoint("append.after_hot", lost_and_settled):
        await store.append([event("on its way")])
    assert notes(await stored(hybrid)) == ["first", "on its way"]
