"""The eight ways in which the seed's sample loses data, each of which must not happen here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.engines.postgres.wake import PostgresWake
from holdfast.values.wakes import WakeStatus
from tests.engines.hybrid import HybridHarness, valkey
from tests.memory.scenes import ANA, BEN, bare, event, flush, gaps, notes, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


async def test_1_two_equal_events_are_two_and_a_retry_is_one(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    yes, again = event("yes", occurred_at=NOON), event("yes", occurred_at=NOON)
    await store.append([yes])
    await store.append([again])
    await store.append([yes])
    await flush(hybrid)
    await store.append([again])
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["yes", "yes"]


async def test_2_nothing_has_a_time_to_live_before_it_is_flushed(hybrid: HybridHarness) -> None:
    store, states = hybrid.store("episodes"), hybrid.store("short_term")
    await store.append([event("waits")])
    await states.set_state("s1", {"step": 1})
    async with bare() as client:
        keys = await client.keys("*")
        assert len(keys) >= 6
        assert {key: await client.ttl(key) for key in keys} == dict.fromkeys(keys, -1)
    await hybrid.elapse(30 * 86400)
    assert notes(await store.recent(ANA, session_id="s1")) == ["waits"]
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["waits"]


async def test_3_a_burst_is_a_log_and_not_one_document(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    await asyncio.gather(*(store.append([event(f"{at}")]) for at in range(50)))
    found = await store.recent(ANA, session_id="s1", limit=100)
    assert sorted(map(int, notes(found))) == list(range(50))
    await flush(hybrid)
    assert await stored(hybrid) == found


async def test_4_a_batch_keeps_its_order_and_its_times(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    times = [NOON + timedelta(seconds=at) for at in (3, 1, 2)]
    await store.append([event(f"{at}", occurred_at=when) for at, when in enumerate(times)])
    await flush(hybrid)
    found = await stored(hybrid)
    assert [one.occurred_at for one in found] == times
    assert [one.seq for one in found] == [1, 2, 3]


async def test_5_k_events_are_recalled_among_many_agents(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    others = [event(f"tide {at}", agent=BEN, session=f"b{at % 20}") for at in range(400)]
    mine = [event(f"tide {at}", session="mine") for at in range(5)]
    vectors = [[1.0, 0.001 * at] for at in range(405)]
    await store.append([*others, *mine], embeddings=vectors)
    assert len(await store.recall(ANA, [1.0, 0.0], limit=5)) == 5
    assert len(await store.recall(ANA, "tide", limit=5)) == 5


class DownEmbedder:
    """An embedding service that is out of order."""

    name = "down"
    dimension = 2

    async def embed(self, texts: Sequence[str], *, mode: str = "passage") -> list[list[float]]:
        raise ConnectionError(f"no {mode} of {len(texts)} today")


async def test_6_an_embedder_that_is_down_stops_no_flush(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes", embedder=DownEmbedder())
    await store.append([event("the tide is low")])
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["the tide is low"]
    [found] = await store.recall(ANA, "tide")
    assert "down" in found.degraded


async def test_7_new_warm_restored_and_lost_are_told_apart(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    assert (await hybrid.wakes().wake("s1")).status is WakeStatus.NEW
    sent = await store.append([event("one"), event("two")])
    warm = await hybrid.wakes().wake("s1")
    assert (warm.status, warm.events) == (WakeStatus.WARM, sent)
    await flush(hybrid)
    await hybrid.elapse(120)
    await hybrid.consolidator.run_once()
    await hybrid.elapse(7200)
    restored = await hybrid.wakes().wake("s1")
    assert (restored.status, restored.events) == (WakeStatus.RESTORED, sent)
    assert (await hybrid.wakes().wake("s1")).status is WakeStatus.WARM
    await store.append([event("three")])
    hybrid.die()
    store = hybrid.store("episodes")
    assert valkey().ask("FLUSHALL") == "+OK"
    lost = await hybrid.wakes().wake("s1")
    assert lost.status is WakeStatus.GAP
    assert (lost.gaps[0].epoch, lost.gaps[0].from_seq) == (1, 3)
    assert lost.events == sent
    alone = PostgresWake(hybrid.engine, tenant=hybrid._prefix + "default")
    assert (await alone.wake("s1")).gaps == lost.gaps
    assert (await alone.wake("another")).status is WakeStatus.NEW
    states = hybrid.store("short_term")
    await states.set_state("only a state", {})
    assert (await hybrid.wakes().wake("only a state")).status is WakeStatus.WARM


async def test_8_without_redis_writes_go_to_postgres_and_are_counted(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = hybrid.store("episodes")
    log = hybrid.log(hybrid._prefix + "default")
    await store.append([event("before")])
    with monkeypatch.context() as patched:
        patched.setattr(log._breaker, "down_until", float("inf"))
        [aside] = await store.append([event("aside")])
        assert hybrid.consolidator.metrics.fallback_events == 1
        assert notes(await store.recent(ANA, session_id="s1")) == ["before", "aside"]
        assert hybrid.consolidator.metrics.degraded_reads == 1
    [after] = await store.append([event("after")])
    assert (after.epoch, after.seq) > (aside.epoch, aside.seq)
    expected = ["before", "aside", "after"]
    assert notes(await store.recent(ANA, session_id="s1")) == expected
    await flush(hybrid)
    assert notes(await stored(hybrid)) == expected
    assert notes(await store.recent(ANA, session_id="s1")) == expected
    assert await gaps(hybrid) == 0


async def test_8b_a_corrupt_value_is_quarantined_and_never_vanishes(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    await store.append([event("before")])
    tenant = hybrid._prefix + "default"
    async with bare() as client:
        [log] = await client.keys("*:hot")
        await client.xadd(log, {"k": "s1:damaged", "n": "1 2", "a": "x", "p": b"\xff\x00 broken"})
        [meta] = await client.keys("*:ses:s1")
        await client.hset(meta, mapping={"seq": 2, "pending": 2})
    await store.append([event("after")])
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["before", "after"]
    [letter] = await hybrid.durable.dead_letters(tenant, limit=10)
    assert (letter.payload, letter.event_id, letter.seq) == (b"\xff\x00 broken", "damaged", 2)
    assert await gaps(hybrid) == 0
