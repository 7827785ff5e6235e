"""At level committed an acknowledgement follows a commit that names the write, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from holdfast.engines.redis.hot_log import RedisHotLog
from holdfast.spi.hybrid.hot_log import Marks
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, TimedOutError, UnavailableError
from holdfast.values.failpoints import failpoint
from holdfast.values.states import StateWrite
from tests.engines.hybrid import CommittedHybridHarness, HybridHarness, valkey
from tests.memory.scenes import ANA, event, flush, notes, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def committed() -> AsyncIterator[HybridHarness]:
    """Both stores, empty, at level committed."""
    harness = CommittedHybridHarness()
    await harness.open()
    yield harness
    await harness.close()


def empties_redis(*, times: int = 1) -> Callable[[], None]:
    """What empties Redis the first ``times`` it is called."""
    left = [times]

    def empty() -> None:
        if left[0]:
            left[0] -= 1
            assert valkey().ask("FLUSHALL") == "+OK"

    return empty


async def test_an_event_that_redis_loses_before_its_flush_is_committed_before_it_returns(
    committed: HybridHarness,
) -> None:
    store = committed.store("episodes")
    first = await store.append([event("first")])
    with failpoint("append.after_hot", empties_redis()):
        lost = await store.append([event("lost"), event("elsewhere", session="s2")])
    assert await stored(committed) == [*first, lost[0]]
    assert await stored(committed, "s2") == [lost[1]]
    assert committed.consolidator.metrics.rewritten == 2
    after = await store.append([event("after")])
    assert await stored(committed) == [*first, lost[0], *after]
    assert await store.recent(ANA, session_id="s1") == [*first, lost[0], *after]


async def test_a_hundred_writers_lose_nothing_when_redis_is_emptied_under_them(
    committed: HybridHarness,
) -> None:
    store = committed.store("episodes")
    sent = [event(f"{at}", session=f"s{at % 4}") for at in range(100)]
    with failpoint("append.after_hot", empties_redis(times=10)):
        await asyncio.gather(*(store.append([one]) for one in sent))
    found = [one for at in range(4) for one in await stored(committed, f"s{at}")]
    assert sorted(one.id for one in found) == sorted(one.id for one in sent)


async def test_a_message_that_redis_loses_before_its_flush_is_in_the_transcript(
    committed: HybridHarness,
) -> None:
    history = committed.store("history")
    messages = [ChatMessage.user(f"{at}") for at in range(3)]
    with failpoint("append.after_hot", empties_redis()):
        await history.append_many(ANA, messages, session_id="s1")
    assert [one.id for one in await history.get_messages(ANA, session_id="s1")] == [
        one.id for one in messages
    ]
    assert await history.count_messages(ANA, session_id="s1") == 3


async def test_writers_who_wait_together_share_a_flush(committed: HybridHarness) -> None:
    store = committed.store("episodes")
    await store.append([event("first")])
    flushes, flush_shard = [0], committed.consolidator.flush_shard

    async def counted(tenant: str, shard: int) -> int | None:
        flushes[0] += 1
        return await flush_shard(tenant, shard)

    committed.consolidator.flush_shard = counted  # type: ignore[method-assign]
    await asyncio.gather(*(store.append([event(f"{at}")]) for at in range(50)))
    assert len(await stored(committed)) == 51
    assert flushes[0] < 50


async def test_an_event_that_another_process_has_flushed_is_read_back(
    committed: HybridHarness,
) -> None:
    store = committed.store("episodes")
    through = committed.consolidator.through

    async def late(*given: object) -> object:
        await flush(committed)
        committed.consolidator._commits._waiting.clear()
        return await through(*given)  # type: ignore[arg-type]

    committed.consolidator.through = late  # type: ignore[method-assign,assignment]
    [sent] = await store.append([event("flushed elsewhere")])
    assert await stored(committed) == [sent]
    assert committed.consolidator.metrics.rewritten == 0


async def test_a_retry_of_an_event_that_was_forgotten_returns_where_it_is_stored(
    committed: HybridHarness,
) -> None:
    store = committed.store("episodes")
    once = event("once")
    [first] = await store.append([once])
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await store.append([once]) == [first]
    assert await stored(committed) == [first]
    assert valkey().ask("FLUSHALL") == "+OK"
    with pytest.raises(ConflictError):
        await store.append([event("another body", id=once.id)])


async def test_an_event_that_was_cleared_before_its_flush_does_not_come_back(
    committed: HybridHarness,
) -> None:
    store = committed.store("episodes")
    log = committed.log(committed._prefix + "default")
    log._level = "fsync"
    await store.append([event("cleared")])
    [one] = (await log.hot.window("s1")).entries
    await store.clear("s1")
    assert valkey().ask("FLUSHALL") == "+OK"
    await log.commit([one])
    assert await stored(committed) == []


async def test_writers_held_up_at_a_soft_mark_lose_nothing_either(hybrid: HybridHarness) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    await store.append([event("first")])
    hybrid.log(tenant).hot = RedisHotLog(hybrid.redis, tenant=tenant, marks=Marks(1, 1000))
    with failpoint("append.after_hot", empties_redis()):
        await store.append([event("held up")])
    assert notes(await stored(hybrid)) == ["held up"]


async def test_without_redis_and_postgres_a_commit_is_not_acknowledged(
    committed: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = committed.store("episodes")
    await store.append([event("first")])
    second = event("second")

    async def unreachable(*_: object, **__: object) -> None:
        raise UnavailableError("postgres", "down")

    log = committed.log(committed._prefix + "default")
    with monkeypatch.context() as patched:
        patched.setattr(committed.consolidator, "through", unreachable)
        patched.setattr(log.durable, "find", unreachable)
        with pytest.raises(TimedOutError):
            await store.append([second])
    await store.append([second])
    assert notes(await stored(committed)) == ["first", "second"]


async def test_a_state_is_committed_when_its_write_returns(committed: HybridHarness) -> None:
    states = committed.store("short_term")
    version = 0
    for step in range(5):
        await states.update_state("s1", {f"step {step}": step})
        assert valkey().ask("FLUSHALL") == "+OK"
        found = await states.snapshot("s1")
        assert found.state == {f"step {at}": at for at in range(step + 1)}
        assert found.version > version
        version = found.version
    await states.set_state("s1", {"only": 1})
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {"only": 1}
    await states.clear("s1")
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {}


async def test_a_write_to_a_state_that_redis_loses_before_its_commit_is_done_again(
    committed: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = committed.store("short_term")
    await states.update_state("s1", {"before": 1})
    seen = await states.snapshot("s1")
    empty, read = empties_redis(times=2), committed.dirty.read

    async def emptied(*given: object) -> object:
        empty()
        return await read(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(committed.dirty, "read", emptied)
    await states.update_state("s1", {"a": 1}, expected_version=seen.version)
    await asyncio.gather(*(states.update_state("s1", {f"{at}": at}) for at in range(20)))
    assert valkey().ask("FLUSHALL") == "+OK"
    expected = {"before": 1, "a": 1, **{f"{at}": at for at in range(20)}}
    assert await states.get_state("s1") == expected


async def test_a_newer_version_without_the_write_is_no_commit_of_it(
    committed: HybridHarness,
) -> None:
    states, tenant = committed.store("short_term"), committed._prefix + "default"
    await states.update_state("s1", {"before": 1})
    read = committed.dirty.read

    async def overtaken(*given: object) -> object:
        committed.dirty.read = read  # type: ignore[method-assign]
        found = await read(*given)  # type: ignore[arg-type]
        # Redis loses the write, and another process commits a newer version without it.
        assert valkey().ask("FLUSHALL") == "+OK"
        hot = committed.short_term(tenant)._hot
        assert (await states._storage._restoring.restored("s1"))[0]
        await hot.write(StateWrite("s1", {"other": "1"}), None)
        [now] = await read(tenant, hot.shard_of("s1"), ["s1"])
        await committed.states.save(tenant, [now])
        return found

    committed.dirty.read = overtaken  # type: ignore[method-assign,assignment]
    await states.update_state("s1", {"mine": 1})
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {"before": 1, "other": 1, "mine": 1}


async def test_a_state_without_redis_is_kept_in_postgres(
    committed: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = committed.store("short_term")

    async def away(*_: object) -> object:
        raise UnavailableError("redis", "gone between the write and its commit")

    with monkeypatch.context() as patched:
        patched.setattr(committed.dirty, "read", away)
        await states.update_state("s1", {"a": 1})
    seen = await states.snapshot("s1")
    with monkeypatch.context() as patched:
        patched.setattr(committed.dirty, "read", away)
        with pytest.raises(TimedOutError):
            await states.update_state("s1", {"b": 2}, expected_version=seen.version)
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {"a": 1}


async def test_a_state_restored_from_an_older_version_never_hides_what_was_committed_since(
    committed: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, tenant = committed.store("short_term"), committed._prefix + "default"
    await states.update_state("s1", {"a": 1})
    older, load = await committed.states.load(tenant, "s1"), committed.states.load
    await states.update_state("s1", {"b": 2})
    assert valkey().ask("FLUSHALL") == "+OK"

    async def late(*_: object) -> object:
        # Whoever restores it has read it before the last commit.
        monkeypatch.setattr(committed.states, "load", load)
        return older

    monkeypatch.setattr(committed.states, "load", late)
    await states.update_state("s1", {"c": 3})
    assert await states.get_state("s1") == {"a": 1, "b": 2, "c": 3}
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {"a": 1, "b": 2, "c": 3}
