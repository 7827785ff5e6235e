"""Retries of events that the caller built again, at another time: the first one stays."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest

from holdfast.engines.redis.keys import HotKeys
from holdfast.spi.hybrid.hot_entry import digest_with_time
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import ConflictError
from holdfast.values.events import Event
from tests.engines.hybrid import HybridHarness, valkey
from tests.memory.scenes import ANA, bare, event, flush, gaps, stored
from tests.memory.test_without_redis import redis_down

pytestmark = pytest.mark.asyncio(loop_scope="session")

LATER = datetime(2040, 1, 1, tzinfo=UTC)


def again(one: Event) -> Event:
    """The event as it is built again: without a place, at another time."""
    return dataclasses.replace(one, epoch=0, seq=0, occurred_at=LATER)


async def _unflushed(_: HybridHarness) -> None:
    """It waits in Redis."""


async def _evicted(hybrid: HybridHarness) -> None:
    """The session has left Redis, and so have the ids of its events."""
    await flush(hybrid)
    await hybrid.elapse(120)
    await hybrid.consolidator.run_once()
    await hybrid.elapse(7200)
    async with bare() as client:
        keys = await client.keys("*:ses:*") + await client.keys("*:evt:*")
    # Other tests use the same server.
    assert [key for key in keys if hybrid._prefix in unquote(key.decode())] == []


async def _lost(hybrid: HybridHarness) -> None:
    """Redis lost everything after the flush."""
    await flush(hybrid)
    assert valkey().ask("FLUSHALL") == "+OK"


@pytest.mark.parametrize("happens", [_unflushed, flush, _evicted, _lost])
async def test_a_rebuilt_retry_is_the_first_event_wherever_that_is(
    hybrid: HybridHarness, happens: Callable[[HybridHarness], Awaitable[None]]
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    first, second, third = await store.append([event("1"), event("2"), event("3")])
    await happens(hybrid)
    assert await store.append([again(first)]) == [first]
    assert await store.append([again(third), again(second)]) == [third, second]
    assert await store.recent(ANA, session_id="s1") == [first, second, third]
    for changed in ({"payload": {"note": "other"}}, {"type": "note"}, {"run_id": "r9"}):
        with pytest.raises(ConflictError):
            await store.append([dataclasses.replace(again(first), **changed)])
    await flush(hybrid)
    assert await stored(hybrid) == [first, second, third]
    assert await hybrid.durable.dead_letters(tenant, limit=10) == []
    assert await gaps(hybrid) == 0


async def test_a_retry_after_redis_forgot_the_id_is_dropped_by_the_flush(
    hybrid: HybridHarness,
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    [first] = await store.append([event("1")])
    await flush(hybrid)
    async with bare() as client:
        await client.delete(_seen(hybrid, first))
    await store.append([again(first), event("2")])
    await flush(hybrid)
    assert (await stored(hybrid))[0] == first
    assert len(await stored(hybrid)) == 2
    assert await store.append([again(first)], embeddings=[[1.0]]) == [first]
    assert await hybrid.durable.dead_letters(tenant, limit=10) == []


async def test_a_rebuilt_retry_past_a_silent_redis_is_the_stored_event(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("episodes")
    [first] = await store.append([event("1")])
    await flush(hybrid)
    with redis_down(hybrid):
        assert await store.append([again(first)]) == [first]
        with pytest.raises(ConflictError):
            await store.append([dataclasses.replace(again(first), run_id="r9")])
    assert await store.recent(ANA, session_id="s1") == [first]


async def test_what_redis_loses_is_written_again_with_the_first_time(
    hybrid: HybridHarness,
) -> None:
    store = hybrid.store("episodes")
    [first] = await store.append([event("1")])
    assert await store.append([again(first)]) == [first]
    assert valkey().ask("FLUSHALL") == "+OK"
    [found] = await store.recent(ANA, session_id="s1")
    assert (found.id, found.occurred_at) == (first.id, first.occurred_at)
    [durable] = await stored(hybrid)
    assert durable.occurred_at == first.occurred_at


@pytest.mark.parametrize("flushed", [False, True])
async def test_an_id_that_an_earlier_version_remembered_is_the_same_event(
    hybrid: HybridHarness, *, flushed: bool
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    first, second = await store.append([event("1"), event("2")])
    if flushed:
        await flush(hybrid)
    # Earlier versions kept the place and a digest of everything, the time included.
    async with bare() as client:
        for one in (first, second):
            entry = LogEntry.of_event("event", one)
            value = f"{one.epoch} {one.seq} {digest_with_time(entry)}"
            await client.set(_seen(hybrid, one), value, xx=True)
    assert await store.append([first]) == [first]
    new = event("3")
    found = await store.append([second, new, first])
    assert found[::2] == [second, first]
    for one in (first, second):
        with pytest.raises(ConflictError):
            await store.append([event("4"), dataclasses.replace(one, payload={"note": "other"})])
    await flush(hybrid)
    assert await stored(hybrid) == [first, second, found[1]]
    assert await hybrid.durable.dead_letters(tenant, limit=10) == []


def _seen(hybrid: HybridHarness, one: Event) -> str:
    """Where Redis remembers the id of an event."""
    tenant = hybrid._prefix + "default"
    return HotKeys.of(tenant, one.session_id, hybrid.redis.shards).event(one.id)


async def test_the_older_digest_is_as_earlier_versions_made_it() -> None:
    entry = LogEntry("writer/ana", "s1", "note", '{"b":1}', "e1", "r1", LATER)
    assert digest_with_time(entry) == "235b173d3bc0280663e2e9c2147a0758"
