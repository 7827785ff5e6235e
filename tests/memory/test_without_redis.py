"""Working states while Redis does not answer: read and written in Postgres, and never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker, HotStoreDownError
from holdfast.values.errors import (
    BackPressureError,
    ConflictError,
    InvalidInputError,
    TimedOutError,
    UnavailableError,
)
from holdfast.values.wakes import WakeStatus
from tests.engines.hybrid import HybridHarness, valkey
from tests.memory.scenes import flush

pytestmark = pytest.mark.asyncio(loop_scope="session")


@contextmanager
def redis_down(hybrid: HybridHarness) -> Iterator[None]:
    """As after a call that was not answered."""
    hybrid.breaker.down_until = float("inf")
    yield
    hybrid.breaker.down_until = 0.0


async def waiting(hybrid: HybridHarness) -> int:
    """How many states have fallback writes, of this test's tenants."""
    found = await hybrid.fallback_writes.waiting(limit=1000)
    return sum(tenant.startswith(hybrid._prefix) for tenant, _ in found)


async def test_a_read_is_as_of_the_last_save_and_says_so(hybrid: HybridHarness) -> None:
    states, memory = hybrid.store("short_term"), hybrid.memory("ana", session_id="s1")
    await states.set_state("s1", {"a": 1, "b": None})
    await flush(hybrid)
    await states.update_state("s1", {"a": 2})
    with redis_down(hybrid):
        found = await states.snapshot("s1", keys=["a"])
        assert found.state == {"a": 2}
        assert "with what this process wrote since" in found.degraded
    await hybrid.reopen()
    states, memory = hybrid.store("short_term"), hybrid.memory("ana", session_id="s1")
    with redis_down(hybrid):
        found = await states.snapshot("s1", keys=["a"])
        assert found.state == {"a": 1}
        assert "s1: as of its last save (" in found.degraded
        woken = await memory.hydrate()
        assert woken.state == {"a": 1, "b": None}
        assert "last save" in woken.degraded
        assert await states.get_state("unknown") == {}
    found = await states.snapshot("s1")
    assert (found.state, found.degraded) == ({"a": 2, "b": None}, "")


async def test_writes_are_read_back_and_done_to_the_hot_state_when_redis_is_back(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"kept": 1, "dropped": 1, "changed": 1})
    await flush(hybrid)
    await states.update_state("s1", {"not saved yet": 1})
    with redis_down(hybrid):
        await states.update_state("s1", {"changed": 2, "new\x00": [0.5]}, delete_keys=["dropped"])
        await states.update_state("s1", {"dropped again": 1})
        assert hybrid.consolidator.metrics.fallback_states == 2
        await states.update_state("s1", {}, delete_keys=["dropped again"])
        expected = {"kept": 1, "changed": 2, "new\x00": [0.5], "not saved yet": 1}
        assert await states.get_state("s1") == expected
    assert await states.get_state("s1") == expected
    assert await waiting(hybrid) == 0
    await flush(hybrid)
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == expected


async def test_a_state_that_is_set_or_cleared_meanwhile_has_nothing_of_before(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    for session in ("set", "cleared", "cleared and written"):
        await states.set_state(session, {"old": 1}, ttl_seconds=3600)
    with redis_down(hybrid):
        await states.set_state("set", {"new": 1})
        await states.clear("cleared")
        await states.clear("cleared and written")
        await states.update_state("cleared and written", {"new": 1})
        assert await states.get_state("cleared") == {}
    assert await states.get_state("cleared") == {}
    kept = await states.snapshot("set")
    assert (kept.state, kept.expires_at is None) == ({"new": 1}, False)
    anew = await states.snapshot("cleared and written")
    assert (anew.state, anew.expires_at) == ({"new": 1}, None)


async def test_a_window_runs_on_while_redis_is_away(hybrid: HybridHarness) -> None:
    states = hybrid.store("short_term")
    with redis_down(hybrid):
        await states.set_state("s1", {"a": 1}, ttl_seconds=60)
        assert (await states.snapshot("s1")).expires_at is not None
        await hybrid.elapse(61)
        assert await states.get_state("s1") == {}
        await states.update_state("s1", {"b": 2})
        assert await states.get_state("s1") == {"b": 2}
    anew = await states.snapshot("s1")
    assert (anew.state, anew.expires_at) == ({"b": 2}, None)


async def test_another_process_merges_the_fallback_writes_of_a_dead_one(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    with redis_down(hybrid):
        await states.update_state("s1", {"a": 1})
    await hybrid.reopen()
    await flush(hybrid)
    assert await hybrid.store("short_term").get_state("s1") == {"a": 1}
    assert await waiting(hybrid) == 0


async def test_a_write_that_expects_a_version_is_refused_and_has_no_fallback(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"a": 1})
    await flush(hybrid)
    with redis_down(hybrid):
        seen = await states.snapshot("s1")
        with pytest.raises(UnavailableError):
            await states.set_state("s1", {"a": 2}, expected_version=seen.version)
        with pytest.raises(InvalidInputError):
            await states.set_state("s1", {"a": 2}, expected_version=-1)
        with pytest.raises(InvalidInputError):
            await states.update_state("s1", {"a": 2}, ttl_seconds=0)
    assert await waiting(hybrid) == 0
    assert await states.get_state("s1") == {"a": 1}


async def test_a_write_without_redis_returns_a_number_that_no_state_has(
    hybrid: HybridHarness,
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"a": 1})
    with redis_down(hybrid):
        aside = await states.update_state("s1", {"a": 2})
        assert aside > 0
        found, unknown = await states.get_many(["s1", "unknown"])
        assert (found.state, unknown.state) == ({"a": 2}, {})
        assert found.degraded
        assert unknown.degraded
    with pytest.raises(ConflictError):
        await states.update_state("s1", {"a": 3}, expected_version=aside)
    [found] = await states.get_many(["s1"])
    assert (found.state, found.degraded) == ({"a": 2}, "")
    version = await states.update_state("s1", {"a": 3}, expected_version=found.version)
    assert (await states.snapshot("s1")).version == version


async def test_with_both_stores_away_a_write_is_refused(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = hybrid.store("short_term")

    async def fails(*_args: object, **_how: object) -> None:
        raise UnavailableError("postgres", "down")

    monkeypatch.setattr(hybrid.engine, "fetch", fails)
    with redis_down(hybrid), pytest.raises(BackPressureError):
        await states.update_state("s1", {"a": 1})


async def test_a_session_with_nothing_but_a_fallback_write_is_known(
    hybrid: HybridHarness,
) -> None:
    states, memory = hybrid.store("short_term"), hybrid.memory("ana", session_id="s1")
    with redis_down(hybrid):
        await states.update_state("s1", {"a": 1})
        assert (await memory.hydrate()).status is WakeStatus.WARM
    woken = await memory.hydrate()
    assert (woken.status, woken.state, woken.degraded) == (WakeStatus.WARM, {"a": 1}, "")


async def test_a_call_that_is_not_answered_is_given_up_and_others_are_not_tried() -> None:
    breaker = CircuitBreaker(patience_seconds=0.05)

    async def never() -> None:
        await asyncio.Event().wait()

    async def answers() -> int:
        return 7

    assert await breaker.call(answers) == 7
    with pytest.raises(HotStoreDownError) as caught:
        await breaker.call(never)
    assert not caught.value.sure
    with pytest.raises(HotStoreDownError) as caught:
        await breaker.call(answers)
    assert caught.value.sure
    breaker.down_until = 0.0
    task = asyncio.create_task(breaker.call(never))
    await asyncio.sleep(0)
    with pytest.raises(HotStoreDownError):  # one call probes, and the others fail at once
        await breaker.call(answers)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await breaker.call(answers) == 7


async def test_a_hot_store_that_was_away_and_refuses_is_back_for_all() -> None:
    breaker = CircuitBreaker()

    async def away() -> None:
        raise UnavailableError("redis", "nobody listens")

    async def refuses() -> None:
        raise ConflictError("event", "e1")

    with pytest.raises(HotStoreDownError):
        await breaker.call(away)
    breaker.down_until = 0.0
    for _ in range(2):
        with pytest.raises(ConflictError):
            await breaker.call(refuses)


async def test_a_conditional_write_without_an_answer_says_that_it_may_be_done(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = hybrid.store("short_term")
    monkeypatch.setattr(hybrid.breaker, "patience_seconds", 0.05)

    async def never(*_args: object, **_how: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(hybrid.redis, "run", never)
    with pytest.raises(TimedOutError):
        await states.update_state("s1", {"a": 1}, expected_version=0)


async def test_a_merged_fallback_write_does_not_hide_what_was_written_after_it(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = hybrid.store("short_term")
    with redis_down(hybrid):
        await states.update_state("s1", {"count": 1})
    merged = hybrid.fallback_writes.merged

    async def dies(*_: object) -> None:
        """Whoever did it dies before it can say so."""

    monkeypatch.setattr(hybrid.fallback_writes, "merged", dies)
    assert await states.get_state("s1") == {"count": 1}
    await states.update_state("s1", {"count": 2})
    with redis_down(hybrid):
        assert await states.get_state("s1") == {"count": 2}
    assert valkey().ask("FLUSHALL") == "+OK"
    monkeypatch.setattr(hybrid.fallback_writes, "merged", merged)
    await states._storage.merge("s1")
    assert await states.get_state("s1") == {"count": 2}
    await flush(hybrid)
    hybrid.die()
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await hybrid.store("short_term").get_state("s1") == {"count": 2}


async def test_a_fallback_write_during_a_merge_is_not_forgotten(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = hybrid.store("short_term")
    with redis_down(hybrid):
        await states.update_state("s1", {"count": 1})
    read = hybrid.fallback_writes.read

    async def meanwhile(tenant: str, session: str) -> object:
        found = await read(tenant, session)
        monkeypatch.setattr(hybrid.fallback_writes, "read", read)
        with redis_down(hybrid):
            await states.update_state("s1", {"count": 2})
        return found

    monkeypatch.setattr(hybrid.fallback_writes, "read", meanwhile)
    await states._storage.merge("s1")
    assert await states.get_state("s1") == {"count": 2}


async def test_a_fallback_write_never_replaces_a_state_that_redis_loses_again(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"kept": 1})
    await flush(hybrid)
    with redis_down(hybrid):
        await states.update_state("s1", {"aside": 2})
    merge, left = states._storage._hot.merge, [2]

    async def emptied(*given: object, **how: object) -> object:
        if left[0]:
            left[0] -= 1
            assert valkey().ask("FLUSHALL") == "+OK"
        return await merge(*given, **how)

    monkeypatch.setattr(states._storage._hot, "merge", emptied)
    assert await states.get_state("s1") == {"kept": 1, "aside": 2}
    await flush(hybrid)
    hybrid.die()
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await hybrid.store("short_term").get_state("s1") == {"kept": 1, "aside": 2}


async def test_a_read_without_redis_is_not_between_what_was_saved_and_what_was_aside(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, tenant = hybrid.store("short_term"), hybrid._prefix + "default"
    await states.update_state("s1", {"count": 1})
    await flush(hybrid)
    with redis_down(hybrid):
        await states.update_state("s1", {"count": 2})
    read, load = hybrid.fallback_writes.read, hybrid.states.load

    async def done_meanwhile(*_: object) -> None:
        """Another process does it to the hot state, saves that, and goes on."""
        monkeypatch.setattr(hybrid.fallback_writes, "read", read)
        monkeypatch.setattr(hybrid.states, "load", load)
        down, hybrid.breaker.down_until = hybrid.breaker.down_until, 0.0
        await states._storage.merge("s1")
        await states.update_state("s1", {"count": 3})
        await flush(hybrid)
        hybrid.breaker.down_until = down

    for name, call in (("read", read), ("load", load)):
        store = hybrid.fallback_writes if name == "read" else hybrid.states

        async def slowly(*given: object, call: object = call) -> object:
            found = await call(*given)  # type: ignore[operator]
            await done_meanwhile()
            return found

        monkeypatch.setattr(store, name, slowly)
        with redis_down(hybrid):
            assert (await states.get_state("s1"))["count"] >= 2
        assert await states.get_state("s1") == {"count": 3}
        with redis_down(hybrid):
            await states.update_state("s1", {"count": 4})
    assert await states.get_state("s1") == {"count": 4}
    assert await hybrid.fallback_writes.read(tenant, "s1") is None
