"""What the consolidator does with what is not well: poison, lost stores, clears, too much."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.engines.hybrid import consolidation
from holdfast.engines.hybrid.backpressure import Backpressure, BackpressureLimits
from holdfast.engines.redis.hot_log import RedisHotLog
from holdfast.spi.hybrid.hot_entry import pack, unpack
from holdfast.spi.hybrid.hot_log import HotStats, Marks
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import (
    BackPressureError,
    ConflictError,
    UnavailableError,
)
from holdfast.values.failpoints import failpoint
from holdfast.values.wakes import WakeStatus
from tests.engines.hybrid import HybridHarness, valkey
from tests.engines.postgres_database import connected
from tests.memory.scenes import ANA, bare, event, flush, gaps, notes, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def _nothing_poisonous(hybrid: HybridHarness) -> AsyncIterator[None]:
    """The table refuses what says poison, as a broken insert would."""
    async with connected(hybrid.url()) as connection:
        await connection.execute(
            "ALTER TABLE holdfast.events ADD CONSTRAINT no_poison "
            "CHECK (body !~ 'poison') NOT VALID"
        )
    try:
        yield
    finally:
        async with connected(hybrid.url()) as connection:
            await connection.execute("ALTER TABLE holdfast.events DROP CONSTRAINT no_poison")


async def test_poison_lands_byte_exact_in_dead_letters_and_its_neighbours_are_stored(
    hybrid: HybridHarness,
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    bad = [event("poison 1"), event("poison 2")]
    sent = [event("a"), bad[0], event("b"), bad[1], event("c")]
    async with _nothing_poisonous(hybrid):
        placed = await store.append(sent)
        await flush(hybrid)
        assert notes(await stored(hybrid)) == ["a", "b", "c"]
        letters = await hybrid.durable.dead_letters(tenant, limit=10)
        payloads = [pack(LogEntry.of_event("event", one)) for one in bad]
        assert [one.payload for one in letters] == payloads
        assert [(one.epoch, one.seq) for one in letters] == [(1, 2), (1, 4)]
        assert "no_poison" in letters[0].reason
        assert notes(await store.recent(ANA, session_id="s1")) == ["a", "b", "c"]
        assert await gaps(hybrid) == 0
    for letter in letters:
        place = await hybrid.durable.replay(tenant, letter, unpack("s1", letter.payload))
        assert place == (letter.epoch, letter.seq)
    assert await stored(hybrid) == placed
    assert await store.recent(ANA, session_id="s1") == placed
    assert len(await store.recall(ANA, "poison")) == 2
    assert await hybrid.durable.dead_letters(tenant, limit=10) == []


async def test_a_turn_that_kills_its_consolidator_again_and_again_is_found(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    sent = [event(note) for note in ("a", "b", "deadly", "c", "d")]
    await store.append(sent)
    shard = hybrid.log(tenant).hot.shard_of("s1")

    def read(session: str, payload: bytes) -> LogEntry:
        if b"deadly" in payload:
            raise MemoryError
        return unpack(session, payload)

    monkeypatch.setattr(consolidation, "unpack", read)
    deaths = 0
    while (await hybrid.queue.stats()).pending:
        try:
            await hybrid.consolidator.flush_shard(tenant, shard)
        except MemoryError:
            deaths += 1
            assert deaths < 100
    assert deaths > 5
    assert notes(await stored(hybrid)) == ["a", "b", "c", "d"]
    [letter] = await hybrid.durable.dead_letters(tenant, limit=10)
    assert letter.payload == pack(LogEntry.of_event("event", sent[2]))
    assert "handed out" in letter.reason
    assert await gaps(hybrid) == 0


@pytest.mark.parametrize(
    "failure", [UnavailableError("postgres", "full"), asyncio.CancelledError()]
)
@pytest.mark.parametrize("place", ["consolidate.after_claim", "consolidate.before_commit"])
async def test_a_turn_is_not_to_blame_for_an_outage_however_often_it_is_tried(
    hybrid: HybridHarness, failure: BaseException, place: str
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    sent = await store.append([event(note) for note in ("a", "b", "c")])
    shard = hybrid.log(tenant).hot.shard_of("s1")

    def fail() -> None:
        raise failure

    with failpoint(place, fail):
        for _ in range(3 * consolidation.DEADLY_DELIVERIES):
            with pytest.raises(type(failure)):
                await hybrid.consolidator.flush_shard(tenant, shard)
    assert await hybrid.consolidator.flush_shard(tenant, shard) == len(sent)
    assert await stored(hybrid) == sent
    assert await hybrid.durable.dead_letters(tenant, limit=10) == []


async def test_a_delivery_is_not_taken_back_from_who_has_the_turn_by_now(
    hybrid: HybridHarness,
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    await store.append([event("a")])
    shard = hybrid.log(tenant).hot.shard_of("s1")
    first = await hybrid.queue.claim(tenant, shard, limit=1)
    second = await hybrid.queue.claim(tenant, shard, limit=1)
    for late in (first, first, second, second):
        await hybrid.queue.give_back(tenant, shard, late)
    [third] = await hybrid.queue.claim(tenant, shard, limit=1)
    assert [turn.deliveries for turn in (*first, *second, third)] == [1, 2, 2]


async def test_an_emptied_redis_is_reported_as_a_gap_and_no_number_is_used_again(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("episodes")
    before = await store.append([event(f"{at}") for at in range(3)])
    await flush(hybrid)
    lost = await store.append([event("lost 1"), event("lost 2")])
    hybrid.die()
    store = hybrid.store("episodes")
    assert valkey().ask("FLUSHALL") == "+OK"
    after = await store.append([event("after")])
    woken = await hybrid.wakes().wake("s1")
    assert woken.status is WakeStatus.GAP
    [gap] = woken.gaps
    assert gap.from_seq <= lost[0].seq <= lost[-1].seq <= gap.to_seq
    assert after[0].seq > gap.to_seq
    assert after[0].epoch == lost[0].epoch + 1
    await flush(hybrid)
    assert await stored(hybrid) == [*before, *after]
    assert await store.recent(ANA, session_id="s1") == [*before, *after]


async def test_a_redis_that_lost_its_newest_turns_never_gives_their_places_twice(
    hybrid: HybridHarness,
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    await store.append([event("kept")])
    async with bare() as client:
        [meta] = await client.keys("*:ses:s1")
        older = await client.hgetall(meta)
        [second] = await store.append([event("stored")])
        await flush(hybrid)
        # A replica that was behind takes over: what was flushed is not known there any more.
        await client.delete(meta)
        await client.hset(meta, mapping={**older, b"pending": 0})
    await store.append([event("same place"), event("behind it")])
    await flush(hybrid)
    assert await hybrid.durable.dead_letters(tenant, limit=10) == []
    [later] = await store.append([event("later")])
    assert later.epoch > second.epoch
    await flush(hybrid)
    found = await stored(hybrid)
    assert notes(found) == ["kept", "stored", "same place", "behind it", "later"]
    assert second in found
    assert await store.recent(ANA, session_id="s1") == found


async def test_what_is_cleared_while_it_is_in_flight_never_comes_back(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("old", run_id="r1"), event("other", run_id="r2")])
    tenant = hybrid._prefix + "default"
    shard = hybrid.log(tenant).hot.shard_of("s1")
    assert len(await hybrid.queue.claim(tenant, shard, limit=10)) == 2
    assert await store.clear("s1", run_id="r1") == 1
    [again] = await store.append([event("new", run_id="r1")])
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["other", "new"]
    assert notes(await store.recent(ANA, session_id="s1")) == ["other", "new"]
    assert again.seq == 3
    assert await gaps(hybrid) == 0


async def test_clears_in_the_middle_of_a_flush_never_come_back(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")

    async def write() -> None:
        for at in range(60):
            await store.append([event(f"{at}", run_id="r1"), event(f"kept {at}", run_id="r2")])

    async def consolidate() -> None:
        for _ in range(40):
            await hybrid.consolidator.run_once()
            await asyncio.sleep(0)

    async def clear() -> None:
        for _ in range(20):
            await store.clear("s1", run_id="r1")
            await asyncio.sleep(0)

    await asyncio.gather(write(), consolidate(), clear())
    await store.clear("s1", run_id="r1")
    await flush(hybrid)
    expected = [f"kept {at}" for at in range(60)]
    assert notes(await stored(hybrid)) == expected
    assert notes(await store.recent(ANA, session_id="s1", limit=500)) == expected
    assert await gaps(hybrid) == 0


async def test_two_consolidators_share_the_shards_and_store_each_event_once(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("episodes")

    async def write(session: str) -> None:
        for at in range(40):
            await store.append([event(f"{at}", session=session)])

    stop = asyncio.Event()
    workers = [asyncio.create_task(hybrid.consolidator.run(stop)) for _ in range(3)]
    sessions = [f"s{at}" for at in range(6)]
    await asyncio.gather(*map(write, sessions))
    stop.set()
    await asyncio.gather(*workers)
    await flush(hybrid)
    for session in sessions:
        assert notes(await stored(hybrid, session)) == [f"{at}" for at in range(40)]
    assert await gaps(hybrid) == 0


async def test_too_many_waiting_events_hold_writers_up_and_then_refuse_them(
    hybrid: HybridHarness,
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    log = hybrid.log(tenant)
    log.hot = RedisHotLog(hybrid.redis, tenant=tenant, marks=Marks(soft=1000, hard=3))
    await store.append([event(f"{at}") for at in range(3)])
    with pytest.raises(BackPressureError) as caught:
        await store.append([event("too much")])
    assert caught.value.retry_after_seconds > 0
    await flush(hybrid)
    await store.append([event("3")])
    log.hot = RedisHotLog(hybrid.redis, tenant=tenant, marks=Marks(soft=1, hard=1000))
    await store.append([event("4")])
    assert notes(await stored(hybrid)) == [f"{at}" for at in range(5)]


async def test_old_events_and_a_full_memory_hold_writers_up_and_then_refuse_them(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    backpressure = Backpressure(hybrid.queue, BackpressureLimits(), every_seconds=0)

    async def seen(stats: HotStats) -> bool:
        async def reply() -> HotStats:
            return stats

        monkeypatch.setattr(hybrid.queue, "stats", reply)
        return await backpressure.check("acme")

    assert await seen(HotStats(1, 299)) is False
    assert await seen(HotStats(1, 301)) is True
    assert await seen(HotStats(1, 0, 0.7)) is True
    for stats, reason in ((HotStats(1, 3601), "oldest"), (HotStats(1, 0, 0.9), "maxmemory")):
        with pytest.raises(BackPressureError, match=reason):
            await seen(stats)
    assert await seen(HotStats(0, 0)) is False


async def test_a_committed_append_is_in_postgres_when_it_returns(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    hybrid.log(hybrid._prefix + "default")._level = "committed"
    await asyncio.gather(*(store.append([event(f"{at}")]) for at in range(20)))
    assert len(await stored(hybrid)) == 20
    assert hybrid.consolidator.metrics.flushed == 20


async def test_the_same_id_after_it_was_forgotten_is_stored_once(hybrid: HybridHarness) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    first = event("once")
    await store.append([first])
    await flush(hybrid)
    async with bare() as client:
        await client.delete(*await client.keys("*:evt:*"))
    await store.append([first, event("next")])
    other = event("another body", id=first.id)
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["once", "next"]
    async with bare() as client:
        await client.delete(*await client.keys("*:evt:*"))
    await store.append([other])
    await flush(hybrid)
    [letter] = await hybrid.durable.dead_letters(tenant, limit=10)
    assert letter.event_id == first.id
    with pytest.raises(ConflictError):
        await hybrid.durable.replay(tenant, letter, unpack("s1", letter.payload))
    assert await hybrid.durable.discard(tenant, letter.id)
    assert not await hybrid.durable.discard(tenant, letter.id)


async def test_the_window_is_bounded_and_reads_reach_beyond_it(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    sent = [f"{at}" for at in range(250)]
    for at in range(0, 250, 50):
        await store.append([event(note) for note in sent[at : at + 50]])
    await flush(hybrid)
    async with bare() as client:
        [window] = await client.keys("*:win:s1")
        assert await client.llen(window) == 100
    await store.append([event("250")])
    assert notes(await store.recent(ANA, session_id="s1", limit=500)) == [*sent, "250"]
    assert notes(await store.recent(ANA, session_id="s1", limit=3)) == ["248", "249", "250"]


async def test_more_than_a_thousand_events_need_another_reservation(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("episodes")
    for at in range(0, 2600, 130):
        await store.append([event(f"{at + n}") for n in range(130)])
    await flush(hybrid)
    assert [one.seq for one in await stored(hybrid)] == list(range(1, 2601))
    assert await gaps(hybrid) == 0


async def test_a_round_that_fails_is_tried_again_and_counted(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("waits")])
    stop, once = asyncio.Event(), hybrid.consolidator.run_once

    async def fails(**_how: object) -> bool:
        monkeypatch.setattr(hybrid.consolidator, "run_once", once)
        raise ZeroDivisionError

    monkeypatch.setattr(hybrid.consolidator, "run_once", fails)
    running = asyncio.create_task(hybrid.consolidator.run(stop))
    async with asyncio.timeout(60):
        while await hybrid.queue.length(
            hybrid._prefix + "default", hybrid.log(hybrid._prefix + "default").hot.shard_of("s1")
        ):
            await asyncio.sleep(0.01)
    stop.set()
    await running
    assert hybrid.consolidator.metrics.failures == 1
    assert notes(await stored(hybrid)) == ["waits"]
