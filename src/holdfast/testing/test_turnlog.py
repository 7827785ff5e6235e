"""What every ``TurnLog`` promises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.kernel.core.errors import ConflictError, InvalidInputError
from holdfast.kernel.storage.turnlog import Backlog, ClaimedTurn, LogPosition, TurnEntry, TurnLog
from holdfast.testing.harness import Harness

CONTRACT = "turn_log"
pytestmark = pytest.mark.asyncio(loop_scope="session")

EMPTY = Backlog(unclaimed=0, claimed=0, oldest_age_seconds=0.0)


def _entries(session: str, *names: Any) -> list[TurnEntry]:
    return [TurnEntry(f"e{name}", session, f"payload {name}".encode()) for name in names]


def _names(turns: list[ClaimedTurn]) -> list[str]:
    return [turn.entry.event_id for turn in turns]


async def _append(store: TurnLog, session: str, *names: Any) -> list[int]:
    return [(await store.append(entry)).seq for entry in _entries(session, *names)]


async def _drain(store: TurnLog) -> list[ClaimedTurn]:
    turns = await store.claim("drain", min_idle_seconds=0)
    await store.acknowledge([turn.id for turn in turns])
    return turns


async def test_an_entry_comes_back_as_it_was_appended(store: TurnLog) -> None:
    entry = TurnEntry("e: 🦀", "s: {x}*", b"\x00\xff payload")
    position = await store.append(entry)
    (turn,) = await store.claim("worker")
    assert (turn.entry, turn.position) == (entry, position)
    assert turn.appended_at.utcoffset() is not None


async def test_the_numbers_of_a_session_start_at_1_and_have_no_gaps(store: TurnLog) -> None:
    assert await _append(store, "s1", *range(10)) == list(range(1, 11))
    positions = [turn.position for turn in await _drain(store)]
    assert positions == sorted(positions)
    assert len({position.epoch for position in positions}) == 1


async def test_each_session_has_its_own_numbers(store: TurnLog) -> None:
    seqs = [(await _append(store, session, n))[0] for n in range(3) for session in ("s1", "s2")]
    assert seqs == [1, 1, 2, 2, 3, 3]


async def test_append_is_idempotent_by_event_id(store: TurnLog) -> None:
    first, second = _entries("s1", 1, 2)
    places = [await store.append(entry) for entry in (first, second)]
    await store.claim("worker", limit=1)
    assert [await store.append(entry) for entry in (first, second)] == places
    assert await _append(store, "s1", 3) == [3]
    assert _names(await _drain(store)) == ["e1", "e2", "e3"]


async def test_many_who_append_the_same_event_at_once_make_one_entry(store: TurnLog) -> None:
    (entry,) = _entries("s1", 1)
    places = await asyncio.gather(*(store.append(entry) for _ in range(20)))
    assert len(set(places)) == 1
    assert _names(await _drain(store)) == ["e1"]


async def test_the_same_event_id_with_another_payload_is_a_conflict(store: TurnLog) -> None:
    await _append(store, "s1", 1)
    with pytest.raises(ConflictError) as caught:
        await store.append(TurnEntry("e1", "s1", b"other"))
    assert (caught.value.kind, caught.value.key) == ("event", "e1")
    await _drain(store)
    with pytest.raises(ConflictError):
        await store.append(TurnEntry("e1", "s1", b"other"))
    assert await store.pending() == EMPTY


async def test_the_same_event_id_in_another_session_is_another_entry(store: TurnLog) -> None:
    await store.append(TurnEntry("e1", "s1", b"a"))
    await store.append(TurnEntry("e1", "s2", b"b"))
    turns = await _drain(store)
    assert {(turn.entry.session_id, turn.entry.payload) for turn in turns} == {
        ("s1", b"a"),
        ("s2", b"b"),
    }


async def test_equal_payloads_under_different_event_ids_stay_two(store: TurnLog) -> None:
    for event_id in ("e1", "e2"):
        await store.append(TurnEntry(event_id, "s1", b"yes"))
    assert [turn.entry.payload for turn in await _drain(store)] == [b"yes", b"yes"]


async def test_entries_appended_at_once_all_survive_without_gaps(store: TurnLog) -> None:
    sessions = ("s1", "s2")
    places = await asyncio.gather(
        *(store.append(entry) for s in sessions for entry in _entries(s, *range(50)))
    )
    assert [sorted(place.seq for place in half) for half in (places[:50], places[50:])] == [
        list(range(1, 51))
    ] * 2
    turns = await _drain(store)
    for session in sessions:
        mine = [turn for turn in turns if turn.entry.session_id == session]
        assert [turn.position.seq for turn in mine] == list(range(1, 51))


async def test_append_many_is_all_or_nothing(store: TurnLog) -> None:
    await _append(store, "s1", 2)
    conflict = TurnEntry("e2", "s1", b"other")
    twice = [TurnEntry("e5", "s1", b"a"), TurnEntry("e5", "s1", b"b")]
    text: Any = "text"
    for last, error in (
        ([conflict], ConflictError),
        (twice, ConflictError),
        ([TurnEntry("e6", "s1", text)], InvalidInputError),
    ):
        with pytest.raises(error):
            await store.append_many([*_entries("s1", 1, 3), *last])
    assert await _append(store, "s1", 4) == [2]
    assert _names(await _drain(store)) == ["e2", "e4"]


async def test_the_entries_of_an_append_many_follow_each_other(store: TurnLog) -> None:
    batches = await asyncio.gather(
        *(store.append_many(_entries("s1", f"{n}a", f"{n}b", f"{n}c")) for n in range(20))
    )
    for first, second, third in batches:
        assert (second.seq, third.seq) == (first.seq + 1, first.seq + 2)
    names = _names(await _drain(store))
    assert sorted(names[::3]) == sorted(f"e{n}a" for n in range(20))
    assert [name[:-1] for name in names[::3]] == [name[:-1] for name in names[2::3]]


async def test_append_many_of_what_is_partly_there_appends_the_rest(store: TurnLog) -> None:
    places = await store.append_many(_entries("s1", 1, 2))
    again = await store.append_many(_entries("s1", 3, 1, 4, 3))
    assert again[1] == places[0]
    assert [place.seq for place in again] == [3, 1, 4, 3]
    assert _names(await _drain(store)) == ["e1", "e2", "e3", "e4"]


async def test_append_many_of_nothing_does_nothing(store: TurnLog) -> None:
    assert await store.append_many([]) == []
    assert await store.pending() == EMPTY


async def test_append_many_of_two_sessions_is_refused(store: TurnLog) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await store.append_many([*_entries("s1", 1), *_entries("s2", 2)])
    assert caught.value.field == "entries"
    assert await store.pending() == EMPTY


async def test_an_event_id_is_known_for_an_hour_after_its_entry_was_acknowledged(
    harness: Harness, store: TurnLog
) -> None:
    await _append(store, "s1", 1)
    await harness.elapse(86_400)
    await _drain(store)
    await harness.elapse(3500)
    assert await _append(store, "s1", 1, 2) == [1, 2]
    assert _names(await _drain(store)) == ["e2"]


async def test_numbers_go_on_after_everything_was_acknowledged(
    harness: Harness, store: TurnLog
) -> None:
    await _append(store, "s1", 1, 2)
    await _drain(store)
    await harness.elapse(10**7)
    assert await _append(store, "s1", 3) == [3]


async def test_advance_raises_the_place_after_which_a_session_goes_on(store: TurnLog) -> None:
    before = [await store.append(entry) for entry in _entries("s1", 1)]
    ahead = LogPosition(before[0].epoch + 1, 40)
    assert await store.advance("s1", ahead) == ahead
    (after,) = await store.append_many(_entries("s1", 2))
    assert after == LogPosition(ahead.epoch, 41)
    assert await _append(store, "s2", 3) == [1]
    assert [turn.position for turn in await _drain(store)][:2] == [*before, after]


async def test_advance_never_lowers_a_place(store: TurnLog) -> None:
    ahead = LogPosition(5, 10)
    await store.advance("s1", ahead)
    for lower in (LogPosition(5, 9), LogPosition(4, 99), LogPosition(0, 0)):
        assert await store.advance("s1", lower) == ahead
    assert await store.append(_entries("s1", 1)[0]) == LogPosition(5, 11)


async def test_a_payload_is_any_bytes_and_nothing_else(store: TurnLog) -> None:
    payloads = [b"", bytes(range(256)), b"x" * 1_000_000]
    for n, payload in enumerate(payloads):
        await store.append(TurnEntry(f"e{n}", "s1", payload))
    bad: Any
    for bad in ("text", None, 7, bytearray(b"x")):
        with pytest.raises(InvalidInputError) as caught:
            await store.append(TurnEntry("bad", "s1", bad))
        assert caught.value.field == "entry.payload"
    for bad in ("text", None, ("e1", "s1", b"")):
        with pytest.raises(InvalidInputError) as caught:
            await store.append(bad)
        assert caught.value.field == "entry"
    assert [turn.entry.payload for turn in await _drain(store)] == payloads


@pytest.mark.parametrize("bad", ["", "a\nb", "x" * 513, "\ud800", None])
async def test_an_id_that_is_not_an_id_is_refused_and_nothing_is_written(
    store: TurnLog, bad: Any
) -> None:
    for field, call in (
        ("entry.event_id", store.append(TurnEntry(bad, "s1", b""))),
        ("entry.session_id", store.append(TurnEntry("e1", bad, b""))),
        (
            "entries[1].event_id",
            store.append_many([*_entries("s1", 1), TurnEntry(bad, "s1", b"")]),
        ),
        ("consumer", store.claim(bad)),
        ("ids[0]", store.acknowledge([bad])),
        ("session_id", store.advance(bad, LogPosition(1, 1))),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == field
    assert await store.pending() == EMPTY
    assert await _append(store, "s1", 1) == [1]


async def test_one_tenant_never_sees_anothers_entries(harness: Harness, store: TurnLog) -> None:
    other = harness.store(CONTRACT, tenant="acme")
    await _append(store, "s1", 1, 2)
    assert await other.pending() == EMPTY
    assert await other.claim("worker") == []
    assert await _append(other, "s1", 1) == [1]
    await other.advance("s1", LogPosition(9, 9))
    turns = await store.claim("worker")
    assert _names(turns) == ["e1", "e2"]
    (theirs,) = await other.claim("worker")
    assert await other.acknowledge([theirs.id]) == 1
    assert (await store.pending()).claimed == 2
    assert await _append(store, "s1", 3) == [3]


async def test_what_a_store_returns_is_the_callers_to_mutate(store: TurnLog) -> None:
    (await store.append_many(_entries("s1", 1, 2))).clear()
    (await store.claim("worker")).clear()
    assert _names(await _drain(store)) == ["e1", "e2"]


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: TurnLog) -> None:
    entries = _entries("s1", 1, 2)
    await store.append_many(entries)
    entries.clear()
    turns = await store.claim("worker")
    ids = [turns[0].id]
    await store.acknowledge(ids)
    ids[0] = turns[1].id
    assert _names(await _drain(store)) == ["e2"]


async def test_entries_claims_and_numbers_are_still_there_after_a_reopen(
    harness: Harness, store: TurnLog
) -> None:
    await _append(store, "s1", 1, 2, 3)
    done, claimed = await store.claim("dead", limit=2)
    await store.acknowledge([done.id])
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert _names(await again.claim("worker")) == ["e3"]
    assert await _append(again, "s1", 1, 3, 4) == [1, 3, 4]
    await harness.elapse(61)
    taken = await again.claim("worker")
    assert _names(taken) == ["e2", "e3", "e4"]
    assert (taken[0].position, taken[0].deliveries) == (claimed.position, 2)
