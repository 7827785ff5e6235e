"""The turn log over many shards, one shard, a cluster, and a clock that is not to be trusted."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from holdfast.backends.redis import scripts
from holdfast.backends.redis.keys import shard_of
from holdfast.backends.redis.turnlog import RedisTurnLog
from holdfast.kernel.storage.turnlog import LogPosition, TurnEntry
from tests.backends.redis_engine import bare, engine
from tests.engines.redis import MOVED_CLOCK, cluster

pytestmark = pytest.mark.asyncio(loop_scope="session")

SESSIONS = [f"s{n}" for n in range(40)]


async def _fill(log: RedisTurnLog, each: int) -> None:
    for at in range(each):
        for session in SESSIONS:
            await log.append(TurnEntry(f"e{at}", session, f"{at}".encode()))


async def test_all_shards_of_a_server_are_one_log_in_the_order_of_its_clock() -> None:
    async with engine() as opened:
        log = RedisTurnLog(opened)
        await _fill(log, 3)
        turns = []
        while batch := await log.claim("w1", limit=7):
            turns += batch
        expected = [(session, f"e{at}") for at in range(3) for session in SESSIONS]
        assert [(turn.entry.session_id, turn.entry.event_id) for turn in turns] == expected
        assert len({turn.id.partition("-")[0] for turn in turns}) == 16
        assert [turn.id for turn in await log.claim("w2", limit=9, min_idle_seconds=0)] == [
            turn.id for turn in turns[:9]
        ]
        assert await log.acknowledge([turn.id for turn in turns]) == len(expected)
        assert (await log.pending()).total == 0


async def test_consumers_of_different_shards_never_meet() -> None:
    async with engine(shards=4) as opened:
        whole = RedisTurnLog(opened)
        await _fill(whole, 2)
        logs = [RedisTurnLog(opened, shard=shard) for shard in range(4)]
        batches = await asyncio.gather(*(log.claim("worker") for log in logs))
        for shard, batch in enumerate(batches):
            sessions = {turn.entry.session_id for turn in batch}
            assert {shard_of("default", session, 4) for session in sessions} == {shard}
            assert (await logs[shard].pending()).claimed == len(batch)
        assert sum(map(len, batches)) == (await whole.pending()).claimed == 80


async def test_a_cluster_hands_out_every_entry_once_and_in_the_order_of_its_session() -> None:
    async with engine(cluster().url) as opened:
        log = RedisTurnLog(opened, tenant="of a cluster")
        await _fill(log, 3)
        assert (await log.pending()).unclaimed == 120
        turns = []
        while batch := await log.claim("w1", limit=50):
            turns += batch
        for session in SESSIONS:
            mine = [turn.position.seq for turn in turns if turn.entry.session_id == session]
            assert mine == [1, 2, 3]
        assert await log.acknowledge([turn.id for turn in turns]) == 120


async def test_a_clock_that_goes_back_or_stands_still_keeps_the_order() -> None:
    async with engine(shards=1) as opened:
        log = RedisTurnLog(opened)
        await log.append(TurnEntry("e0", "s1", b""))
        opened.scripts = scripts.load(clock=MOVED_CLOCK.format(shift=-3600 * 1_000_000))
        for at in range(1, 4):
            await log.append(TurnEntry(f"e{at}", "s1", b""))
        await log.append_many([TurnEntry(f"e{at}", "s1", b"") for at in range(4, 9)])
        turns = await log.claim("w1")
        assert [turn.entry.event_id for turn in turns] == [f"e{at}" for at in range(9)]
        assert [turn.position.seq for turn in turns] == list(range(1, 10))


async def test_positions_are_exact_to_the_last_of_64_bits() -> None:
    async with engine() as opened:
        log = RedisTurnLog(opened)
        far = LogPosition(2**62 + 1, 2**53 + 1)
        assert await log.advance("s1", far) == far
        assert await log.advance("s1", LogPosition(2**62, 2**63 - 1)) == far
        assert await log.append(TurnEntry("e1", "s1", b"")) == LogPosition(2**62 + 1, 2**53 + 2)
        assert await log.append(TurnEntry("e2", "s1", b"")) == LogPosition(2**62 + 1, 2**53 + 3)
        [turn, _] = await log.claim("w1")
        assert turn.position == LogPosition(2**62 + 1, 2**53 + 2)


async def test_nothing_that_is_not_acknowledged_can_expire() -> None:
    async with engine() as opened, bare() as client:
        log = RedisTurnLog(opened)
        await _fill(log, 1)
        turns = await log.claim("w1", limit=10)
        lifetimes = Counter([await client.pttl(key) for key in await client.keys("*")])
        assert set(lifetimes) == {-1}
        await log.acknowledge([turn.id for turn in turns])
        mortal = [key for key in await client.keys("*") if await client.pttl(key) != -1]
        assert len(mortal) == 10
        assert all(b":seen:" in key for key in mortal)
        assert min([await client.ttl(key) for key in mortal]) > 3500


async def test_the_tenants_of_a_shard_are_known() -> None:
    async with engine(shards=1) as opened, bare() as client:
        await RedisTurnLog(opened, tenant="a:c{m}e").append(TurnEntry("e1", "s1", b""))
        await RedisTurnLog(opened, tenant="other").advance("s1", LogPosition(2, 4))
        assert await client.smembers("hf:{s00}:tenants") == {b"a:c{m}e", b"other"}


async def test_a_consumer_that_has_gone_with_nothing_left_is_forgotten() -> None:
    async with engine(shards=1) as opened, bare() as client:
        log = RedisTurnLog(opened, forgotten_seconds=0)
        await log.append_many([TurnEntry(f"e{at}", "s1", b"x") for at in range(2)])
        [first] = await log.claim("gone", limit=1)
        await log.claim("busy", limit=1)
        await log.acknowledge([first.id])
        [key] = await client.keys("*:log")

        async def consumers() -> set[bytes]:
            return {one["name"] for one in await client.xinfo_consumers(key, "holdfast")}

        assert await consumers() == {b"gone", b"busy"}
        # In an hour, or with nothing at hand, at once.
        assert await RedisTurnLog(opened).claim("next") == []
        assert await consumers() >= {b"gone", b"busy"}
        assert await log.claim("next") == []
        assert await consumers() - {b"next"} == {b"busy"}
