"""What every ``Channel`` promises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from holdfast.contracts.channel import Channel
from holdfast.testing.harness import Harness
from holdfast.values.channels import ChannelEvent
from holdfast.values.errors import ConflictError, InvalidInputError

CONTRACT = "channels"
pytestmark = pytest.mark.asyncio(loop_scope="session")

Stream = AsyncGenerator[ChannelEvent, None]


async def _take(stream: Stream, count: int) -> list[ChannelEvent]:
    """The next events; the time limit only turns a hang into a failure.

    A notice may be lost, on a cluster for example; then each event is found by the next poll.
    """
    async with asyncio.timeout(60):
        return [await anext(stream) for _ in range(count)]


async def _read_on(store: Channel, after: str | None, count: int) -> list[ChannelEvent]:
    async with aclosing(store.subscribe(cursor=after)) as stream:
        return await _take(stream, count)


async def _waiting(stream: Stream, count: int) -> asyncio.Task[list[ChannelEvent]]:
    """A subscriber in the background that has had time to begin."""
    task = asyncio.create_task(_take(stream, count))
    for _ in range(10):
        await asyncio.sleep(0)
    return task


async def test_an_event_comes_back_as_it_was_published(store: Channel) -> None:
    sent = await store.publish({"type": "handover", "to": ["writer", None]}, id="e1")
    assert (sent.id, sent.event) == ("e1", {"type": "handover", "to": ["writer", None]})
    assert sent.published_at.utcoffset() is not None
    minted = await store.publish({})
    assert minted.id not in ("", "e1")
    assert await store.read() == [sent, minted]


async def test_events_come_in_the_order_in_which_they_were_published(store: Channel) -> None:
    sent = [await store.publish({"n": n}, id=f"e{-n}") for n in range(30)]
    assert await store.read() == sent
    assert await _read_on(store, None, 30) == sent


async def test_read_starts_at_the_oldest_event_and_takes_at_most_limit(store: Channel) -> None:
    sent = [await store.publish({"n": n}) for n in range(120)]
    assert await store.read(limit=3) == sent[:3]
    assert await store.read() == sent[:100]
    assert await store.read(limit=1000) == sent


async def test_read_after_a_cursor_returns_what_came_after_it(store: Channel) -> None:
    sent = [await store.publish({"n": n}) for n in range(5)]
    assert await store.read(cursor=sent[1].cursor) == sent[2:]
    assert await store.read(cursor=sent[1].cursor, limit=2) == sent[2:4]
    assert await store.read(cursor=sent[4].cursor) == []


async def test_read_of_an_empty_channel_is_an_empty_list(store: Channel) -> None:
    assert await store.read() == []


async def test_a_limit_of_zero_is_an_empty_result_and_a_negative_one_is_refused(
    store: Channel,
) -> None:
    await store.publish({})
    assert await store.read(limit=0) == []
    with pytest.raises(InvalidInputError) as caught:
        await store.read(limit=-1)
    assert caught.value.field == "limit"


async def test_subscribe_hands_out_what_is_there_and_then_what_comes(store: Channel) -> None:
    sent = [await store.publish({"n": n}) for n in range(3)]
    async with aclosing(store.subscribe()) as stream:
        assert await _take(stream, 3) == sent
        for n in range(3, 6):
            sent.append(await store.publish({"n": n}))
            assert await _take(stream, 1) == sent[-1:]


async def test_a_waiting_subscriber_is_woken_by_a_publish(store: Channel) -> None:
    async with aclosing(store.subscribe()) as stream:
        for n in range(5):
            waiting = await _waiting(stream, 1)
            assert not waiting.done()
            sent = await store.publish({"n": n})
            assert await waiting == [sent]


async def test_a_subscriber_that_comes_back_with_its_cursor_misses_nothing(
    store: Channel,
) -> None:
    sent = [await store.publish({"n": n}) for n in range(3)]
    (first,) = await _read_on(store, None, 1)
    sent += [await store.publish({"n": n}) for n in range(3, 6)]
    assert await _read_on(store, first.cursor, 5) == sent[1:]


async def test_a_subscriber_after_the_tail_sees_only_what_is_new(store: Channel) -> None:
    old = [await store.publish({"n": n}) for n in range(3)]
    tail = await store.tail()
    assert tail == old[-1].cursor
    assert await store.read(cursor=tail) == []
    new = await store.publish({"n": 3})
    assert await _read_on(store, tail, 1) == [new]


async def test_the_tail_of_an_empty_channel_is_a_cursor_too(store: Channel) -> None:
    tail = await store.tail()
    async with aclosing(store.subscribe(cursor=tail)) as stream:
        waiting = await _waiting(stream, 1)
        sent = await store.publish({"n": 1})
        assert await waiting == [sent]
    assert await store.read(cursor=tail) == [sent]


async def test_the_tail_stays_when_all_events_have_expired(harness: Harness) -> None:
    store = harness.store(CONTRACT, retention_seconds=60)
    old = await store.publish({"n": 1})
    await harness.elapse(61)
    assert await store.tail() == old.cursor
    new = await store.publish({"n": 2})
    assert await store.read(cursor=old.cursor) == [new]
    assert new.cursor != old.cursor


async def test_many_subscribers_see_all_events_in_the_same_order(store: Channel) -> None:
    streams = [store.subscribe() for _ in range(5)]
    waiting = [await _waiting(stream, 30) for stream in streams]
    await asyncio.gather(*(store.publish({"n": n}) for n in range(30)))
    seen = await asyncio.gather(*waiting)
    assert seen == [await store.read()] * 5
    for stream in streams:
        await stream.aclose()


async def test_events_published_at_once_all_arrive_each_once(store: Channel) -> None:
    async with aclosing(store.subscribe()) as stream:
        waiting = await _waiting(stream, 100)
        sent = await asyncio.gather(*(store.publish({"n": n}) for n in range(100)))
        seen = await waiting
    assert sorted(one.event["n"] for one in seen) == list(range(100))
    assert len({one.cursor for one in sent}) == 100
    assert {one.id for one in seen} == {one.id for one in sent}


async def test_closing_one_subscriber_does_not_disturb_the_others(store: Channel) -> None:
    closed, cancelled, kept = [store.subscribe() for _ in range(3)]
    await store.publish({"n": 0})
    for stream in (closed, cancelled, kept):
        await _take(stream, 1)
    waiting = await _waiting(kept, 2)
    dropped = await _waiting(cancelled, 1)
    await closed.aclose()
    first = await store.publish({"n": 1})
    assert await dropped == [first]
    dropped = await _waiting(cancelled, 1)
    dropped.cancel()
    await asyncio.gather(dropped, return_exceptions=True)
    second = await store.publish({"n": 2})
    assert await waiting == [first, second]
    await kept.aclose()


async def test_publishing_the_same_id_again_is_one_event(harness: Harness, store: Channel) -> None:
    first = await store.publish({"n": 1}, id="e1")
    other = await store.publish({"n": 2}, id="e2")
    await harness.elapse(10)
    assert await store.publish({"n": 1}, id="e1") == first
    assert await store.read() == [first, other]


async def test_many_who_publish_the_same_id_at_once_make_one_event(store: Channel) -> None:
    sent = await asyncio.gather(*(store.publish({"n": 1}, id="e1") for _ in range(20)))
    assert await store.read() == sent[:1]
    assert sent == sent[:1] * 20


async def test_the_same_id_with_another_event_is_a_conflict(store: Channel) -> None:
    first = await store.publish({"n": 1}, id="e1")
    for other in ({"n": 2}, {}, {"n": 1.0}):
        with pytest.raises(ConflictError) as caught:
            await store.publish(other, id="e1")
        assert (caught.value.kind, caught.value.key) == ("event", "e1")
    assert await store.read() == [first]


async def test_equal_events_without_an_id_stay_two(store: Channel) -> None:
    for _ in range(2):
        await store.publish({"answer": "yes"})
    assert [one.event for one in await store.read()] == [{"answer": "yes"}] * 2


async def test_an_event_is_gone_when_it_is_retention_seconds_old(harness: Harness) -> None:
    store = harness.store(CONTRACT, retention_seconds=60)
    old = await store.publish({"n": 1})
    await harness.elapse(40)
    young = await store.publish({"n": 2})
    assert await store.read() == [old, young]
    await harness.elapse(21)
    assert await store.read() == [young]
    await harness.elapse(40)
    assert await store.read() == []


async def test_a_subscriber_never_sees_an_expired_event(harness: Harness) -> None:
    store = harness.store(CONTRACT, retention_seconds=60)
    for n in range(3):
        await store.publish({"n": n})
    async with aclosing(store.subscribe()) as stream:
        await _take(stream, 1)
        await harness.elapse(61)
        young = await store.publish({"n": 3})
        assert await _take(stream, 1) == [young]
    assert await _read_on(store, None, 1) == [young]


async def test_the_cursor_of_an_expired_event_still_works(harness: Harness) -> None:
    store = harness.store(CONTRACT, retention_seconds=60)
    old = await store.publish({"n": 1})
    await harness.elapse(61)
    young = [await store.publish({"n": n}) for n in (2, 3)]
    assert await store.read(cursor=old.cursor) == young
    assert await _read_on(store, old.cursor, 2) == young


async def test_the_id_of_an_expired_event_may_be_used_again(harness: Harness) -> None:
    store = harness.store(CONTRACT, retention_seconds=60)
    old = await store.publish({"n": 1}, id="e1")
    await harness.elapse(61)
    new = await store.publish({"n": 2}, id="e1")
    assert await store.read() == await store.read(cursor=old.cursor) == [new]
    assert await store.publish({"n": 2}, id="e1") == new


async def test_clear_removes_all_events_and_keeps_the_cursors_valid(store: Channel) -> None:
    await store.clear()
    first, last = await store.publish({"n": 1}, id="e1"), await store.publish({"n": 2})
    await store.clear()
    await store.clear()
    assert await store.read() == await store.read(cursor=first.cursor) == []
    assert await store.tail() == last.cursor
    again = await store.publish({"n": 3}, id="e1")
    assert await store.read(cursor=last.cursor) == await store.read() == [again]


@pytest.mark.parametrize("bad", ["", "nonsense", "e1", "-1", "x" * 600, "\ud800", 1])
async def test_a_cursor_that_is_not_the_channels_is_refused(store: Channel, bad: Any) -> None:
    await store.publish({"n": 1}, id="e1")
    with pytest.raises(InvalidInputError) as caught:
        await store.read(cursor=bad)
    assert caught.value.field == "cursor"
    with pytest.raises(InvalidInputError) as caught:
        await _read_on(store, bad, 1)
    assert caught.value.field == "cursor"


async def test_an_event_that_is_not_a_json_object_is_refused_by_its_path_and_nothing_is_written(
    store: Channel,
) -> None:
    bad: Any
    for bad in ([1], "text", None, 7):
        with pytest.raises(InvalidInputError) as caught:
            await store.publish(bad)
        assert caught.value.field == "event"
    for bad in (float("nan"), 2**63, "\ud800", b"x", (1,)):
        with pytest.raises(InvalidInputError, match=r"^event\.deep\[1\]"):
            await store.publish({"deep": [0, bad]})
    assert await store.read() == []


@pytest.mark.parametrize("bad", ["", "a\nb", "x" * 513, "\ud800", 7])
async def test_an_event_id_that_is_not_an_id_is_refused(store: Channel, bad: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await store.publish({}, id=bad)
    assert caught.value.field == "id"
    assert await store.read() == []


async def test_values_come_back_exactly_as_they_went_in(store: Channel) -> None:
    event = {"z": [1e16, -0.0, 1, 1.0, True, "a\x00b", "🦀"], "": {"b": 2**63 - 1, "a": None}}
    sent = await store.publish(event)
    (read,) = await store.read()
    (streamed,) = await _read_on(store, None, 1)
    assert {repr(one.event) for one in (sent, read, streamed)} == {repr(event)}


async def test_one_channel_never_sees_anothers_events(harness: Harness, store: Channel) -> None:
    other = harness.store(CONTRACT, name="other: {x}*")
    mine = await store.publish({"n": 1}, id="e1")
    assert await other.read() == []
    theirs = await other.publish({"n": 2}, id="e1")
    assert await store.read() == [mine]
    assert await _read_on(other, None, 1) == [theirs]
    assert await harness.store(CONTRACT, name="other: {x}*").read() == [theirs]


async def test_one_tenant_never_sees_anothers_events(harness: Harness, store: Channel) -> None:
    other = harness.store(CONTRACT, tenant="acme")
    async with aclosing(other.subscribe()) as stream:
        waiting = await _waiting(stream, 1)
        mine = await store.publish({"n": 1}, id="e1")
        theirs = await other.publish({"n": 2}, id="e1")
        assert await waiting == [theirs]
    assert await other.read() == [theirs]
    assert await store.read() == [mine]


async def test_what_a_store_returns_is_the_callers_to_mutate(store: Channel) -> None:
    sent = await store.publish({"list": [1]})
    (read,), (streamed,) = await store.read(), await _read_on(store, None, 1)
    for one in (sent, read, streamed):
        one.event["list"].append(2)
        one.event["new"] = True
    (again,), (streamed,) = await store.read(), await _read_on(store, None, 1)
    assert again.event == streamed.event == {"list": [1]}


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: Channel) -> None:
    event = {"list": [1]}
    sent = await store.publish(event)
    event["list"].append(2)
    assert sent.event == (await store.read())[0].event == {"list": [1]}


async def test_events_are_still_there_after_a_reopen(harness: Harness, store: Channel) -> None:
    sent = [await store.publish({"n": n}, id=f"e{n}") for n in range(3)]
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.read(cursor=sent[0].cursor) == sent[1:]
    assert await _read_on(again, None, 3) == sent
    assert await again.publish({"n": 1}, id="e1") == sent[1]
    new = await again.publish({"n": 3})
    assert await again.read(cursor=sent[2].cursor) == [new]
