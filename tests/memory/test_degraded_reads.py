"""What a process wrote and had acknowledged it reads, whatever becomes of Redis meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.engines.hybrid import unflushed
from holdfast.engines.hybrid.consolidation import Consolidator
from holdfast.engines.hybrid.unflushed import Unflushed, Unsaved
from holdfast.values.content import ChatMessage
from holdfast.values.wakes import WakeStatus
from tests.engines.hybrid import HybridHarness, valkey
from tests.memory.scenes import ANA, event, flush, notes, stored
from tests.memory.test_without_redis import redis_down

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_every_read_without_redis_has_what_this_process_wrote(
    hybrid: HybridHarness,
) -> None:
    history, store = hybrid.store("history"), hybrid.store("episodes")
    states, memory = hybrid.store("short_term"), hybrid.memory("writer/ana", session_id="s1")
    messages = [ChatMessage.user(f"{at}") for at in range(3)]
    await history.append(ANA, messages[0], session_id="s1")
    await flush(hybrid)
    for one in messages[1:]:
        await history.append(ANA, one, session_id="s1")
    await states.update_state("s1", {"step": 1})
    wanted = [one.id for one in messages]
    since, until = (messages[0].created_at + timedelta(hours=hour) for hour in (-1, 1))
    with redis_down(hybrid):
        assert await history.count_messages(ANA, session_id="s1") == 3
        found = await history.get_messages(ANA, session_id="s1")
        assert [one.id for one in found] == wanted
        newest = await history.get_messages(ANA, session_id="s1", recent_limit=2)
        assert [one.id for one in newest] == wanted[1:]
        assert [one.id for one in await store.recent(ANA, session_id="s1")] == wanted
        assert [one.id for one in await store.recent(ANA)] == wanted
        between = await store.between(ANA, since, until, session_id="s1")
        assert [one.id for one in between] == wanted
        assert await states.get_state("s1") == {"step": 1}
        assert hybrid.consolidator.metrics.degraded_reads == 7
        woken = await memory.hydrate()
        assert [one.id for one in woken.recent] == wanted
        assert (woken.status, woken.state) == (WakeStatus.RESTORED, {"step": 1})
        assert "session s1" in woken.degraded
        assert "stored up to epoch 1, number 1" in woken.degraded
        assert "seen by this process up to epoch 1, number 3" in woken.degraded
    await flush(hybrid)
    assert not hybrid.log(hybrid._prefix + "default")._unflushed
    assert (await memory.hydrate()).degraded == ""


async def test_a_session_that_is_in_redis_alone_is_not_new_to_another_process(
    hybrid: HybridHarness,
) -> None:
    await hybrid.memory("writer/ana", session_id="s1").record("note", {"text": "in Redis alone"})
    await hybrid.reopen()
    memory = hybrid.memory("writer/ana", session_id="s1")
    with redis_down(hybrid):
        woken = await memory.hydrate()
        assert (woken.status, woken.recent) == (WakeStatus.RESTORED, [])
        assert "newer events may be missing" in woken.degraded
        never = await hybrid.memory("writer/ana", session_id="never").hydrate()
        assert never.status is WakeStatus.NEW
        assert "session never" in never.degraded
    assert (await memory.hydrate()).status is WakeStatus.WARM


async def test_what_was_cleared_is_not_remembered(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    await store.append([event("gone", run_id="r1"), event("kept", run_id="r2")])
    await store.clear("s1", run_id="r1")
    with redis_down(hybrid):
        assert notes(await store.recent(ANA, session_id="s1")) == ["kept"]
    # Another process clears it: this one still remembers, and the durable log knows better.
    tenant = hybrid._prefix + "default"
    log = hybrid.logs.pop(tenant)
    await hybrid.store("episodes").clear("s1")
    hybrid.logs[tenant] = log
    with redis_down(hybrid):
        assert await store.recent(ANA, session_id="s1") == []
    assert await hybrid.store("history").count_messages(ANA, session_id="s1") == 0


@pytest.mark.parametrize("read", ["session", "agent", "wake", "append"])
async def test_what_redis_lost_before_the_flush_is_written_again_by_its_writer(
    hybrid: HybridHarness, read: str
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("flushed")])
    await flush(hybrid)
    await store.append([event("lost 1"), event("lost 2")])
    assert valkey().ask("FLUSHALL") == "+OK"
    wanted = ["flushed", "lost 1", "lost 2"]
    match read:
        case "session":
            assert notes(await store.recent(ANA, session_id="s1")) == wanted
        case "agent":
            assert notes(await store.recent(ANA)) == wanted
        case "wake":
            assert notes((await hybrid.wakes().wake("s1")).events) == wanted
        case "append":
            await store.append([event("after")])
            wanted.append("after")
    assert notes(await store.recent(ANA, session_id="s1")) == wanted
    await flush(hybrid)
    assert notes(await stored(hybrid)) == wanted
    assert hybrid.consolidator.metrics.rewritten == 2


async def test_a_state_that_redis_lost_is_restored_with_what_this_process_wrote(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"a": 1, "b": 1}, ttl_seconds=3600)
    await flush(hybrid)
    await states.update_state("s1", {"a": 2, "c": 3}, delete_keys=["b"])
    await states.set_state("s2", {"never": "saved"})
    before = await states.snapshot("s1")
    assert valkey().ask("FLUSHALL") == "+OK"
    after = await states.snapshot("s1")
    assert after.state == {"a": 2, "c": 3}
    assert after.version > before.version
    assert after.expires_at is not None
    assert await states.get_state("s2") == {"never": "saved"}
    await flush(hybrid)
    await hybrid.reopen()
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await hybrid.store("short_term").get_state("s1") == {"a": 2, "c": 3}
    await hybrid.store("short_term").clear("s1")
    assert await hybrid.store("short_term").get_state("s1") == {}


async def test_beyond_its_memory_a_write_waits_for_its_commit(hybrid: HybridHarness) -> None:
    store, states = hybrid.store("episodes"), hybrid.store("short_term")
    log = hybrid.log(hybrid._prefix + "default")
    log._unflushed = Unflushed(most=2)
    for at in range(3):
        await store.append([event(f"{at}")])
    assert notes(await stored(hybrid)) == ["0", "1", "2"]
    log._unflushed = Unflushed(most_bytes=100)
    await store.append([event("large")])
    assert notes(await stored(hybrid))[-1] == "large"
    states._storage._unsaved = Unsaved(most=1)
    await states.set_state("s1", {"a": 1})
    await states.set_state("s2", {"a": 2})
    kept = await hybrid.states.versions(hybrid._prefix + "default", ["s1", "s2"])
    assert (kept["s1"].version, kept["s2"].version > 0) == (0, True)
    states._storage._unsaved = Unsaved(most_bytes=600)
    await states.update_state("s3", {"a": "short"})
    await states.update_state("s3", {"a": "x" * 1000})
    kept = await hybrid.states.versions(hybrid._prefix + "default", ["s3"])
    assert kept["s3"].version > 0


async def test_what_other_processes_have_flushed_is_forgotten_in_time(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unflushed, "LOOK_EVERY", 5)
    store, states = hybrid.store("episodes"), hybrid.store("short_term")
    log = hybrid.log(hybrid._prefix + "default")
    other = Consolidator(hybrid.queue, hybrid.durable, advance_epoch=hybrid._advance_epoch)
    for at in range(4):
        await store.append([event(f"{at}")])
        await states.set_state(f"s{at}", {"a": 1})
    assert await other.drain(limit_seconds=60)
    assert len(log._unflushed) == 4
    await store.append([event("4")])
    assert len(log._unflushed) == 1
    shards = {hybrid.short_term(log._tenant)._hot.shard_of(f"s{at}") for at in range(4)}
    for shard in shards:
        changed = await hybrid.dirty.changed(log._tenant, shard, limit=100)
        await hybrid.states.save(log._tenant, changed)
    await states.set_state("s9", {"a": 1})
    assert list(states._storage._unsaved._states) == ["s9"]
