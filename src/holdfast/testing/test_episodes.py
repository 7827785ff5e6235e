"""The promises of ``EpisodicMemory``: the log, its order, and reading by place and by time."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
BEN = AgentId("writer", "ben")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def _event(note: str, *, session: str = "s1", agent: AgentId = ANA, **more: Any) -> Event:
    return Event(agent, session, more.pop("type", "observation"), {"note": note}, **more)


def _notes(events: list[Event]) -> list[str]:
    return [event.payload["note"] for event in events]


async def test_an_event_comes_back_exactly_as_it_was_appended(store: Any) -> None:
    payload = {"b": 1e16, "a": [-0.0, None, {"z": "a\x00b", "y": 2}], "": ""}
    event = Event(ANA, "s1", "observation", payload, run_id="r1", occurred_at=NOON)
    await store.append([event])
    [back] = await store.recent(ANA, session_id="s1")
    assert dataclasses.replace(back, epoch=0, seq=0) == event
    assert repr(back.payload) == repr(payload)


async def test_append_returns_the_events_with_their_position_in_the_log(store: Any) -> None:
    sent = [_event("a"), _event("b", session="s2"), _event("c")]
    back = await store.append(sent)
    assert [dataclasses.replace(one, epoch=0, seq=0) for one in back] == sent
    assert [one.seq for one in back] == [1, 1, 2]
    assert await store.recent(ANA, session_id="s1") == [back[0], back[2]]


async def test_seq_is_gap_free_in_the_log_of_a_session_whoever_writes(store: Any) -> None:
    for at in range(6):
        await store.append([_event(f"{at}", agent=(ANA, BEN)[at % 2])])
    both = await store.recent(ANA, session_id="s1") + await store.recent(BEN, session_id="s1")
    assert sorted(one.seq for one in both) == [1, 2, 3, 4, 5, 6]


async def test_a_batch_is_contiguous_in_each_of_its_sessions(store: Any) -> None:
    batches = [
        [_event(f"{batch}.{at}", session=("s1", "s2")[at % 2]) for at in range(10)]
        for batch in range(6)
    ]
    await asyncio.gather(*map(store.append, batches))
    for session in ("s1", "s2"):
        found = _notes(await store.recent(ANA, session_id=session, limit=100))
        order = [note.split(".")[0] for note in found]
        assert len(found) == 30
        assert all(len(set(order[at : at + 5])) == 1 for at in range(0, 30, 5))


async def test_order_within_a_session_is_epoch_and_seq_never_a_clock(store: Any) -> None:
    await store.append([_event("first", occurred_at=NOON)])
    await store.append([_event("second", occurred_at=NOON - timedelta(days=1))])
    found = await store.recent(ANA, session_id="s1")
    assert _notes(found) == ["first", "second"]
    places = [(one.epoch, one.seq) for one in found]
    assert places == sorted(set(places))
    day = timedelta(days=2)
    assert _notes(await store.between(ANA, NOON - day, NOON + day, session_id="s1")) == [
        "first",
        "second",
    ]


async def test_a_batch_is_atomic_one_bad_event_and_none_is_stored(store: Any) -> None:
    bad = Event(ANA, "s2", "observation", {"x": float("nan")})
    with pytest.raises(InvalidInputError) as caught:
        await store.append([_event("good"), bad])
    assert caught.value.field == "events[1].payload.x"
    assert await store.recent(ANA) == []
    [first] = await store.append([_event("next")])
    assert first.seq == 1


async def test_an_empty_batch_does_nothing(store: Any) -> None:
    assert await store.append([]) == []
    assert await store.recent(ANA) == []


async def test_the_same_id_and_body_again_is_a_no_op_that_returns_the_first_position(
    store: Any,
) -> None:
    event = _event("once")
    [first] = await store.append([event])
    await store.append([_event("between")])
    again = await store.append([event, event])
    assert again == [first, first]
    assert _notes(await store.recent(ANA, session_id="s1")) == ["once", "between"]


async def test_the_same_id_and_body_with_another_time_is_the_same_event_and_the_first_time_stays(
    store: Any,
) -> None:
    event, other = _event("once", occurred_at=NOON), _event("there", session="s2")
    later = dataclasses.replace(event, occurred_at=NOON + timedelta(days=1))
    [first] = await store.append([event])
    assert await store.append([later]) == [first]
    [_, there] = await store.append([_event("between"), other])
    again = dataclasses.replace(other, occurred_at=NOON)
    found = await store.append([again, later, _event("last"), event])
    assert [found[0], found[1], found[3]] == [there, first, first]
    twice = dataclasses.replace(found[2], id="twice", epoch=0, seq=0)
    [one, two] = await store.append([twice, dataclasses.replace(twice, occurred_at=NOON)])
    assert (one, two) == (two, dataclasses.replace(twice, epoch=one.epoch, seq=one.seq))
    log = await store.recent(ANA, session_id="s1")
    assert _notes(log) == ["once", "between", "last", "last"]
    assert (log[0], log[3]) == (first, one)
    assert await store.recent(ANA, session_id="s2") == [there]


async def test_the_same_id_with_another_body_is_a_conflict_and_nothing_is_written(
    store: Any,
) -> None:
    event = _event("first")
    await store.append([event])
    for changed in (
        {"payload": {"note": "other"}},
        {"type": "decision"},
        {"run_id": "r2"},
        {"agent_id": BEN},
    ):
        for when in (event.occurred_at, NOON):
            other = dataclasses.replace(event, occurred_at=when, **changed)
            with pytest.raises(ConflictError) as caught:
                await store.append([_event("new"), other])
            assert caught.value.key == event.id
    assert _notes(await store.recent(ANA, session_id="s1")) == ["first"]


async def test_two_equal_events_with_different_ids_stay_two(store: Any) -> None:
    await store.append([_event("yes", occurred_at=NOON), _event("yes", occurred_at=NOON)])
    assert _notes(await store.recent(ANA, session_id="s1")) == ["yes", "yes"]


async def test_any_type_is_legal(store: Any) -> None:
    await store.append([_event("x", type="tide.turned"), _event("y", type="記録")])
    assert [one.type for one in await store.recent(ANA)] == ["tide.turned", "記録"]


@pytest.mark.needs("history")
async def test_a_message_event_is_a_message_of_the_transcript(harness: Harness, store: Any) -> None:
    history = harness.store("history")
    message = ChatMessage.user("hello", name="ana")
    plain = Event(ANA, "s1", "message", {"role": "assistant", "content": "hi"})
    await store.append([Event.of_message(ANA, "s1", message), plain])
    first, second = await history.get_messages(ANA, session_id="s1")
    assert first == message
    assert (second.role, second.text, second.id) == ("assistant", "hi", plain.id)


@pytest.mark.needs("history")
async def test_an_appended_message_is_an_event_of_the_log(harness: Harness, store: Any) -> None:
    message = ChatMessage.user("hello")
    await harness.store("history").append(ANA, message, session_id="s1", run_id="r1")
    [event] = await store.recent(ANA, session_id="s1", types=["message"])
    assert (event.id, event.run_id, event.seq) == (message.id, "r1", 1)
    assert event.to_message() == message


async def test_a_message_event_with_a_payload_that_is_no_message_is_refused(store: Any) -> None:
    for payload in (
        {},
        {"role": "user"},
        {"role": "nobody", "content": "x"},
        {"role": "user", "content": [{"no": "type"}]},
        {"role": "user", "content": "x", "v": 99},
    ):
        with pytest.raises(InvalidInputError) as caught:
            await store.append([Event(ANA, "s1", "message", payload)])
        assert caught.value.field == "events[0].payload"
    assert await store.recent(ANA) == []


async def test_concurrent_writers_to_one_session_leave_no_gap_and_lose_nothing(store: Any) -> None:
    async def write(writer: int) -> None:
        for at in range(20):
            event = _event(f"{writer}.{at}")
            await store.append([event])
            await store.append([event])

    await asyncio.gather(*map(write, range(8)))
    found = await store.recent(ANA, session_id="s1", limit=1000)
    assert [one.seq for one in found] == list(range(1, 161))
    for writer in range(8):
        mine = [note for note in _notes(found) if note.startswith(f"{writer}.")]
        assert mine == [f"{writer}.{at}" for at in range(20)]


async def test_recent_returns_the_newest_ascending(store: Any) -> None:
    await store.append([_event(f"{at}") for at in range(30)])
    assert _notes(await store.recent(ANA, session_id="s1", limit=3)) == ["27", "28", "29"]
    assert len(await store.recent(ANA, session_id="s1")) == 20
    assert len(await store.recent(ANA, session_id="s1", limit=99)) == 30


async def test_recent_of_all_sessions_is_ordered_by_time_of_occurrence(store: Any) -> None:
    hour = timedelta(hours=1)
    await store.append([_event("late", session="s1", occurred_at=NOON + hour)])
    await store.append([_event("early", session="s2", occurred_at=NOON - hour)])
    await store.append([_event("noon", session="s3", occurred_at=NOON)])
    assert _notes(await store.recent(ANA)) == ["early", "noon", "late"]
    assert _notes(await store.recent(ANA, limit=1)) == ["late"]


async def test_recent_takes_only_the_types_asked_for(store: Any) -> None:
    kinds = ("decision", "tool_call", "decision", "observation")
    await store.append([_event(f"{at}", type=kind) for at, kind in enumerate(kinds)])
    assert _notes(await store.recent(ANA, types=["decision"])) == ["0", "2"]
    assert _notes(await store.recent(ANA, types=["decision", "observation"], limit=2)) == ["2", "3"]


async def test_an_empty_list_of_types_is_an_empty_result(store: Any) -> None:
    await store.append([_event("x", occurred_at=NOON)])
    assert await store.recent(ANA, types=[]) == []
    assert await store.between(ANA, NOON, NOON + timedelta(1), types=[]) == []
    assert await store.recall(ANA, "x", types=[]) == []
    assert await store.clear("s1", types=[]) == 0


async def test_a_limit_of_zero_is_an_empty_result(store: Any) -> None:
    await store.append([_event("x", occurred_at=NOON)])
    assert await store.recent(ANA, limit=0) == []
    assert await store.between(ANA, NOON, NOON + timedelta(1), limit=0) == []
    assert await store.recall(ANA, "x", limit=0) == []
    assert await store.list_sessions(ANA, limit=0) == []


async def test_a_negative_limit_is_an_error_that_names_it(store: Any) -> None:
    for call in (
        store.recent(ANA, limit=-1),
        store.between(ANA, NOON, NOON, limit=-1),
        store.recall(ANA, "x", limit=-1),
        store.list_sessions(ANA, limit=-1),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == "limit"


async def test_one_agent_never_sees_anothers_events(store: Any) -> None:
    await store.append([_event("tide", agent=ANA, occurred_at=NOON)])
    assert await store.recent(BEN) == []
    assert await store.recent(BEN, session_id="s1") == []
    assert await store.between(BEN, NOON, NOON + timedelta(1)) == []
    assert await store.recall(BEN, "tide") == []


async def test_a_tenant_can_neither_read_write_nor_detect_anothers_events(
    harness: Harness, store: Any
) -> None:
    other = harness.store(CONTRACT, tenant="other")
    event = _event("tide", occurred_at=NOON)
    await store.append([event])
    assert await other.recent(ANA) == []
    assert await other.between(ANA, NOON, NOON + timedelta(1)) == []
    assert await other.recall(ANA, "tide") == []
    assert await other.get_session("s1") is None
    assert await other.list_sessions(ANA) == []
    assert await other.clear("s1") == 0
    [theirs] = await other.append([dataclasses.replace(event, payload={"note": "other"})])
    assert theirs.seq == 1
    assert _notes(await store.recent(ANA)) == ["tide"]


async def test_an_unknown_agent_or_session_is_an_empty_result(store: Any) -> None:
    await store.append([_event("x")])
    assert await store.recent(BEN) == []
    assert await store.recent(ANA, session_id="nowhere") == []
    assert await store.recall(ANA, "x", session_id="nowhere") == []
    assert await store.clear("nowhere") == 0
    assert await store.get_session("nowhere") is None


async def test_between_takes_the_start_and_leaves_the_end(store: Any) -> None:
    times = [NOON, NOON + timedelta(hours=1), NOON + timedelta(hours=2)]
    await store.append([_event(f"{at}", occurred_at=when) for at, when in enumerate(times)])
    assert _notes(await store.between(ANA, times[0], times[2])) == ["0", "1"]
    elsewhere = times[1].astimezone(timezone(timedelta(hours=5)))
    assert _notes(await store.between(ANA, elsewhere, times[2])) == ["1"]
    assert await store.between(ANA, times[2], times[0]) == []


async def test_between_pages_with_a_cursor_and_misses_nothing(store: Any) -> None:
    # All at one moment in two sessions: only the position differs.
    sent = [_event(f"{at}", session=f"s{at % 2}", occurred_at=NOON) for at in range(9)]
    await store.append(sent)
    for session in (None, "s0"):
        seen: list[Event] = []
        while page := await store.between(
            ANA,
            NOON,
            NOON + timedelta(1),
            session_id=session,
            limit=2,
            cursor=seen[-1].cursor if seen else None,
        ):
            seen += page
        wanted = {event.id for event in sent if session in (None, event.session_id)}
        assert len(seen) == len(wanted)
        assert {event.id for event in seen} == wanted


async def test_a_cursor_that_no_listing_gave_is_refused(store: Any) -> None:
    [event] = await store.append([_event("a")])
    session = await store.start_session(ANA, "s1")
    for bad in ("", "nonsense", session.cursor, 7, event):
        with pytest.raises(InvalidInputError) as caught:
            await store.between(ANA, NOON, NOON + timedelta(1), cursor=bad)
        assert caught.value.field == "cursor"
    for bad in ("", "nonsense", event.cursor, 7, session):
        with pytest.raises(InvalidInputError) as caught:
            await store.list_sessions(ANA, cursor=bad)
        assert caught.value.field == "cursor"


async def test_a_naive_time_is_refused(store: Any) -> None:
    naive = datetime(2030, 1, 1)  # noqa: DTZ001 - a naive time is what is refused
    for call, field in (
        (store.append([_event("x", occurred_at=naive)]), "events[0].occurred_at"),
        (store.between(ANA, naive, NOON), "start"),
        (store.between(ANA, NOON, naive), "end"),
        (store.recall(ANA, "x", since=naive), "since"),
        (store.recall(ANA, "x", until=naive), "until"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == field


async def test_what_a_store_returns_is_the_callers_to_mutate(store: Any) -> None:
    [returned] = await store.append([Event(ANA, "s1", "observation", {"k": [1]})])
    returned.payload["k"].append(2)
    (await store.recent(ANA))[0].payload.clear()
    (await store.start_session(ANA, "s1", metadata={"m": [1]})).metadata["m"].append(2)
    assert (await store.recent(ANA))[0].payload == {"k": [1]}
    assert (await store.get_session("s1")).metadata == {"m": [1]}


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: Any) -> None:
    payload, metadata = {"k": [1]}, {"m": [1]}
    await store.append([Event(ANA, "s1", "observation", payload)])
    await store.start_session(ANA, "s1", metadata=metadata)
    payload["k"].append(2)
    metadata["m"].append(2)
    assert (await store.recent(ANA))[0].payload == {"k": [1]}
    assert (await store.get_session("s1")).metadata == {"m": [1]}


async def test_what_was_appended_is_there_after_reopening(harness: Harness, store: Any) -> None:
    sent = await store.append([_event("tide"), _event("moon")])
    await store.end_session("s1")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.recent(ANA, session_id="s1") == sent
    assert (await again.get_session("s1")).ended_at is not None
    [after] = await again.append([_event("after")])
    assert after.seq == 3
