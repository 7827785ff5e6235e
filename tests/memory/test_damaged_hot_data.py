"""Damaged values in Redis: Postgres takes their place, they are quarantined, and nothing stops."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import Settings
from holdfast.contracts.short_term import States
from holdfast.engines.hybrid import consolidation
from holdfast.engines.redis.quarantine import KEPT, resp
from holdfast.engines.redis.short_term import RedisStates
from holdfast.values.errors import CodecError
from tests.engines.hybrid import HybridHarness, valkey
from tests.memory.scenes import ANA, bare, event, flush, gaps, notes, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def key_of(client: object, pattern: str) -> bytes:
    """The one key that there is."""
    [key] = await client.keys(pattern)  # type: ignore[attr-defined]
    assert isinstance(key, bytes)
    return key


async def quarantined(hybrid: HybridHarness) -> int:
    """How many values were moved."""
    return (await hybrid.queue.stats()).quarantined


@pytest.mark.parametrize(
    ("field", "value"),
    [("=step", b"{no json"), ("=step", b"\xff\xfe"), ("v", b"seven"), ("x", b"soon")],
)
@pytest.mark.parametrize("use", ["read", "part", "hydrate", "write", "clear", "save"])
async def test_a_corrupt_state_is_restored_from_its_last_save(
    hybrid: HybridHarness, field: str, value: bytes, use: str
) -> None:
    states, memory = hybrid.store("short_term"), hybrid.memory("ana", session_id="s1")
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    async with bare() as client:
        key = await key_of(client, "*:st:s1")
        await client.hset(key, field, value)
        wanted = {"step": 1}
        match use:
            case "read":
                assert await states.get_state("s1") == wanted
            case "part":
                found = await states.snapshot("s1", keys=["step"])
                assert found.state == wanted
            case "hydrate":
                assert (await memory.hydrate()).state == wanted
            case "write":
                await states.update_state("s1", {"step": 2})
                wanted = {"step": 2}
            case "clear":
                await states.clear("s1")
                wanted = {}
            case "save":
                dirty = key.decode().replace(":st:s1", ":dirty")
                await client.zadd(dirty, {"s1": 1 << 52})
                await flush(hybrid)
        assert await states.get_state("s1") == wanted
        await flush(hybrid)
        assert valkey().ask("FLUSHALL") == "+OK"
        hybrid.kept.clear()
        assert await hybrid.store("short_term").get_state("s1") == wanted


@pytest.mark.parametrize("kind", ["ses", "win", "late", "st"])
async def test_a_key_of_the_wrong_type_is_moved_and_read_from_postgres(
    hybrid: HybridHarness, kind: str
) -> None:
    store, states = hybrid.store("episodes"), hybrid.store("short_term")
    await store.append([event("flushed")])
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    await store.append([event("waits")])
    async with bare() as client:
        key = (await key_of(client, "*:ses:s1")).decode().replace(":ses:", f":{kind}:")
        await client.delete(key)
        await client.set(key, b"what is this doing here \xff")
        assert notes(await store.recent(ANA, session_id="s1")) == ["flushed", "waits"]
        assert notes((await hybrid.wakes().wake("s1")).events)[-1] == "waits"
        assert await states.get_state("s1") == {"step": 1}
        await store.append([event("after")])
        await states.update_state("s1", {"step": 2})
        await flush(hybrid)
        assert notes(await stored(hybrid)) == ["flushed", "waits", "after"]
        assert notes(await store.recent(ANA, session_id="s1")) == ["flushed", "waits", "after"]
        assert await states.get_state("s1") == {"step": 2}
        [moved] = await client.keys("*:bad:*")
        assert await client.get(moved) == b"what is this doing here \xff"
        assert 0 < await client.ttl(moved) <= 7 * 86_400
    assert await quarantined(hybrid) == 1


@pytest.mark.parametrize("kind", ["hot", "dirty", "versions", "work", "idle"])
async def test_a_key_of_a_shard_with_the_wrong_type_stops_nothing(
    hybrid: HybridHarness, kind: str
) -> None:
    store, states = hybrid.store("episodes"), hybrid.store("short_term")
    await store.append([event("flushed")])
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    await store.append([event("waits")])
    await states.update_state("s1", {"step": 2})
    async with bare() as client:
        prefix = (await key_of(client, "*:ses:s1")).decode().removesuffix("ses:s1")
        tag = prefix.partition("}")[0] + "}:"
        key = f"{tag}{kind}" if kind in {"work", "idle"} else f"{prefix}{kind}"
        await client.delete(key)
        await client.rpush(key, "of the wrong type")
        await flush(hybrid)
        await store.append([event("after")])
        await states.update_state("s1", {"more": 3})
        await flush(hybrid)
        found = notes(await store.recent(ANA, session_id="s1"))
        assert notes(await stored(hybrid)) == found
        # What was in a log of the wrong type is written again, behind what came since.
        expected = ["flushed", "after", "waits"] if kind == "hot" else ["flushed", "waits", "after"]
        assert found == expected
    saved = await hybrid.states.load(hybrid._prefix + "default", "s1")
    assert saved is not None
    assert saved.values == {"step": "2", "more": "3"}
    assert await quarantined(hybrid) == 1


@pytest.mark.parametrize("value", [b"0-0 1 1\n\xff\xfe\n\xff", b"no head at all", b"x y z\n"])
async def test_a_window_entry_that_cannot_be_read_is_read_from_postgres(
    hybrid: HybridHarness, value: bytes
) -> None:
    store, history = hybrid.store("episodes"), hybrid.store("history")
    sent = await store.append([event("one"), event("two")])
    await flush(hybrid)
    async with bare() as client:
        window = await key_of(client, "*:win:s1")
        await client.lset(window, 0, value)
        assert await store.recent(ANA, session_id="s1") == sent
        assert await history.count_messages(ANA, session_id="s1") == 0
        [moved] = await client.keys("*:bad:*")
        assert (await client.lrange(moved, 0, 0)) == [value]
    sent += await store.append([event("three")])
    assert (await hybrid.wakes().wake("s1")).status != "gap"
    assert await store.recent(ANA, session_id="s1") == sent
    await flush(hybrid)
    assert await stored(hybrid) == sent


@pytest.mark.parametrize("field", ["epoch", "seq", "limit", "pending", "heat", "floor", "gaps"])
async def test_a_corrupt_session_is_begun_again_from_postgres(
    hybrid: HybridHarness, field: str
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("flushed")])
    await flush(hybrid)
    await store.append([event("waits")])
    async with bare() as client:
        await client.hset(await key_of(client, "*:ses:s1"), field, b"\xffgarbage")
    wanted = ["flushed", "waits"]
    assert notes(await store.recent(ANA, session_id="s1")) == wanted
    await store.append([event("after")])
    wanted.append("after")
    assert notes(await store.recent(ANA, session_id="s1")) == wanted
    await flush(hybrid)
    assert notes(await stored(hybrid)) == wanted


@pytest.mark.parametrize(
    "fields",
    [
        {"garbage": b"\xff\x00"},
        {"k": b"\xff:\xfe", "n": "1 2", "a": "x", "p": b"payload"},
        {"k": "s1:e9", "n": "one two", "a": "x", "p": b"payload"},
        {"k": "s1:e9", "n": "1 99999999999999999999", "a": "x", "p": b"payload"},
        {"k": "s1%00:e9", "n": "1 2", "a": "x", "p": b"payload"},
        {"k": "s1:e9", "n": "1 2", "a": "x", "p": b"\xff\x00 broken", "q": "more"},
    ],
)
async def test_an_unreadable_stream_entry_is_a_dead_letter_and_stops_no_shard(
    hybrid: HybridHarness, fields: dict[str, str | bytes]
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    for at in range(8):
        await store.append([event(f"{at}", session=f"s{at}")])
    async with bare() as client:
        for log in await client.keys("*:hot"):
            await client.xadd(log, fields)
            await client.xadd(log, fields)
        bad = 2 * len(await client.keys("*:hot"))
    for at in range(8):
        await store.append([event("after", session=f"s{at}")])
        assert notes(await store.recent(ANA, session_id=f"s{at}")) == [f"{at}", "after"]
    assert len(await store.recent(ANA)) == 16
    await hybrid.consolidator.run_once()
    for at in range(8):
        assert notes(await stored(hybrid, f"s{at}")) == [f"{at}", "after"]
    letters = await hybrid.durable.dead_letters(tenant, limit=100)
    raw = resp(
        [
            part if isinstance(part, bytes) else part.encode()
            for pair in fields.items()
            for part in pair
        ]
    )
    assert [one.payload for one in letters] == [raw] * bad
    assert hybrid.consolidator.stuck == {}
    assert await gaps(hybrid) == 0


async def test_a_shard_that_is_stuck_stops_no_other_and_health_says_so(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(background=False, tenant=hybrid._prefix + "default", ack_level="hot")
    async with holdfast.open(hybrid.url(), redis=valkey().url, settings=settings) as state:
        for at in range(8):
            await state.episodes.append([event(f"{at}", session=f"s{at}")])
        assert (await state.ops.health()).status == "ok"
        read, consolidator = consolidation._read, state.ops.hybrid.consolidator

        def fails(turn: object) -> object:
            if getattr(turn, "session", "") == "s3":
                raise ZeroDivisionError("a bug")
            return read(turn)  # type: ignore[arg-type]

        monkeypatch.setattr(consolidation, "_read", fails)
        await consolidator.run_once()
        health = await state.ops.health()
        assert health.status == "degraded"
        assert "ZeroDivisionError: a bug" in str(health)
        left = await state.ops.pending_events()
        assert 1 <= left < 8
        monkeypatch.undo()
        await consolidator.run_once()
        assert await state.ops.pending_events() == 0
        assert (await state.ops.health()).status == "ok"


async def test_the_quarantine_is_bounded(hybrid: HybridHarness) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s0", {"a": 1})
    async with bare() as client:
        prefix = (await key_of(client, "*:st:s0")).decode().removesuffix("s0")
        mine = [
            f"s{at}"
            for at in range(10_000)
            if states._storage._hot.shard_of(f"s{at}") == states._storage._hot.shard_of("s0")
        ][: KEPT + 5]
        for session in mine:
            await client.delete(f"{prefix}{session}")
            await client.rpush(f"{prefix}{session}", "wrong")
            assert await states.get_state(session) in ({}, {"a": 1})
        assert len(await client.keys("*:bad:*")) == KEPT
    assert await quarantined(hybrid) == KEPT


async def test_on_redis_alone_a_corrupt_state_is_an_error_that_names_it(
    hybrid: HybridHarness,
) -> None:
    states = States(RedisStates(hybrid.redis))
    await states.set_state("s1", {"step": 1})
    async with bare() as client:
        await client.hset(await key_of(client, "*:default:st:s1"), "=step", b"\xff")
    with pytest.raises(CodecError, match="s1"):
        await states.get_state("s1")
