"""The promises of ``HistoryStore`` about changes at the end of a transcript."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import ConflictError, InvalidInputError, VersionConflictError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId

CONTRACT = "history"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
BEN = AgentId("writer", "ben")


def _turns(count: int, prefix: str = "turn") -> list[ChatMessage]:
    return [ChatMessage.user(f"{prefix} {at}") for at in range(count)]


async def _texts(store: Any, agent: AgentId = ANA, session: str = "s1", **how: Any) -> list[str]:
    return [one.text for one in await store.get_messages(agent, session_id=session, **how)]


async def _filled(store: Any, count: int = 4) -> list[ChatMessage]:
    await store.append_many(ANA, _turns(count), session_id="s1", run_id="r1")
    found: list[ChatMessage] = await store.get_messages(ANA, session_id="s1")
    return found


async def _note(harness: Harness, text: str) -> bool:
    """Record an event that is no message, if the engine stores such events."""
    if "episodes" not in harness.contracts:
        return False
    await harness.store("episodes").append([Event(ANA, "s1", "note", {"text": text})])
    return True


async def test_pop_removes_the_newest_message_and_returns_it(store: Any) -> None:
    seen = await _filled(store, 3)
    while seen:
        popped, expected = await store.pop(ANA, session_id="s1"), seen.pop()
        assert (popped, popped.seq) == (expected, expected.seq)
        assert await store.get_messages(ANA, session_id="s1") == seen


async def test_pop_of_a_transcript_without_messages_is_none(store: Any) -> None:
    assert await store.pop(ANA, session_id="nowhere") is None
    await _filled(store, 1)
    assert (await store.pop("writer/ana", session_id="s1")).text == "turn 0"
    assert await store.pop(ANA, session_id="s1") is None


async def test_pop_leaves_other_agents_other_sessions_and_events_that_are_no_messages(
    harness: Harness, store: Any
) -> None:
    await _filled(store, 2)
    await store.append(BEN, ChatMessage.user("ben"), session_id="s1")
    await store.append(ANA, ChatMessage.user("elsewhere"), session_id="s2")
    other = harness.store(CONTRACT, tenant="other")
    await other.append(ANA, ChatMessage.user("theirs"), session_id="s1")
    has_note = await _note(harness, "kept")
    assert (await store.pop(ANA, session_id="s1")).text == "turn 1"
    assert await _texts(store) == ["turn 0"]
    assert await _texts(store, BEN) == ["ben"]
    assert await _texts(store, session="s2") == ["elsewhere"]
    assert await _texts(other) == ["theirs"]
    if has_note:
        events = await harness.store("episodes").recent(ANA, session_id="s1", types=["note"])
        assert [one.payload for one in events] == [{"text": "kept"}]


async def test_a_popped_message_is_in_no_page_count_or_recall(harness: Harness, store: Any) -> None:
    await store.append(ANA, ChatMessage.user("a calm sea"), session_id="s1")
    await store.append(ANA, ChatMessage.user("a lighthouse"), session_id="s1")
    await store.pop(ANA, session_id="s1")
    assert await _texts(store) == await _texts(store, recent_limit=5) == ["a calm sea"]
    assert await _texts(store, after_seq=1) == []
    assert await store.count_messages(ANA, session_id="s1") == 1
    if "episodes" in harness.contracts:
        episodes = harness.store("episodes")
        assert await episodes.recall(ANA, "lighthouse") == []
        assert [one.seq for one in await episodes.recent(ANA, session_id="s1")] == [1]
        [hit] = await episodes.recall(ANA, "sea")
        assert hit.event.seq == 1
    await harness.reopen()
    assert await _texts(harness.store(CONTRACT)) == ["a calm sea"]


async def test_a_popped_message_may_be_appended_again_and_gets_a_new_number(store: Any) -> None:
    first, second = await _filled(store, 2)
    await store.pop(ANA, session_id="s1")
    await store.append(ANA, second, session_id="s1", run_id="r1")
    changed = dataclasses.replace(second, content=[TextBlock("changed")])
    await store.pop(ANA, session_id="s1")
    await store.append(ANA, changed, session_id="s1")
    found = await store.get_messages(ANA, session_id="s1")
    assert found == [first, changed]
    assert [one.seq for one in found] == [1, 4]


async def test_of_concurrent_poppers_no_two_get_the_same_message(store: Any) -> None:
    seen = await _filled(store, 5)
    popped = await asyncio.gather(*(store.pop(ANA, session_id="s1") for _ in range(8)))
    assert sorted(one.id for one in popped if one) == sorted(one.id for one in seen)
    assert popped.count(None) == 3
    assert await _texts(store) == []


async def test_replace_tail_puts_messages_in_the_place_of_those_after_a_number(
    store: Any,
) -> None:
    seen = await _filled(store)
    new = _turns(2, "new")
    last = await store.replace_tail(
        ANA, session_id="s1", after_seq=seen[1].seq, messages=new, expected_last_seq=seen[-1].seq
    )
    found = await store.get_messages(ANA, session_id="s1")
    assert found == [*seen[:2], *new]
    assert [one.seq for one in found] == [1, 2, 5, 6]
    assert last == 6
    where = {"session_id": "new", "after_seq": 0, "expected_last_seq": 0}
    assert await store.replace_tail(ANA, messages=_turns(1), run_id="r1", **where) == 1
    await store.clear_run(ANA, session_id="new", run_id="r1")
    assert await _texts(store, session="new") == []


async def test_replace_tail_of_no_messages_removes_those_after_a_number(store: Any) -> None:
    await _filled(store)
    where = {"session_id": "s1", "messages": []}
    assert await store.replace_tail(ANA, after_seq=1, expected_last_seq=4, **where) == 1
    assert await _texts(store) == ["turn 0"]
    assert await store.replace_tail(ANA, after_seq=0, expected_last_seq=1, **where) == 0
    assert await _texts(store) == []
    where["session_id"] = "nowhere"
    assert await store.replace_tail(ANA, after_seq=0, expected_last_seq=0, **where) == 0


async def test_replace_tail_after_the_newest_message_only_appends(store: Any) -> None:
    seen = await _filled(store, 2)
    where = {"session_id": "s1", "after_seq": 2, "expected_last_seq": 2}
    assert await store.replace_tail(ANA, messages=_turns(1, "new"), **where) == 3
    assert await _texts(store) == ["turn 0", "turn 1", "new 0"]
    assert (await store.get_messages(ANA, session_id="s1"))[:2] == seen


async def test_replace_tail_may_keep_messages_that_it_removes_at_new_numbers(store: Any) -> None:
    seen = await _filled(store)
    summary = ChatMessage.system("a summary")
    where = {"session_id": "s1", "after_seq": 0, "expected_last_seq": 4}
    assert await store.replace_tail(ANA, messages=[summary, *seen[-2:]], **where) == 7
    found = await store.get_messages(ANA, session_id="s1")
    assert found == [summary, *seen[-2:]]
    assert [one.seq for one in found] == [5, 6, 7]
    await store.append(ANA, seen[0], session_id="s1")
    assert await _texts(store) == ["a summary", "turn 2", "turn 3", "turn 0"]


async def test_replace_tail_with_another_expected_last_seq_is_a_version_conflict_and_nothing_is_written(  # noqa: E501 - the promise in its words
    store: Any,
) -> None:
    seen = await _filled(store)
    for expected in (0, 3, 5):
        with pytest.raises(VersionConflictError) as caught:
            await store.replace_tail(
                ANA, session_id="s1", after_seq=1, messages=_turns(1), expected_last_seq=expected
            )
        assert (caught.value.kind, caught.value.key) == ("transcript", "s1")
        assert (caught.value.expected, caught.value.actual) == (expected, 4)
    with pytest.raises(VersionConflictError) as caught:
        await store.replace_tail(
            ANA, session_id="new", after_seq=0, messages=_turns(1), expected_last_seq=1
        )
    assert caught.value.actual == 0
    assert await store.get_messages(ANA, session_id="s1") == seen


async def test_replace_tail_with_an_id_that_stays_elsewhere_is_a_conflict_and_nothing_is_written(
    store: Any,
) -> None:
    seen = await _filled(store)
    theirs = ChatMessage.user("ben")
    await store.append(BEN, theirs, session_id="s1")
    for taken in (seen[0], dataclasses.replace(seen[0], content=[]), theirs):
        with pytest.raises(ConflictError) as caught:
            await store.replace_tail(
                ANA,
                session_id="s1",
                after_seq=2,
                messages=[*_turns(1), taken],
                expected_last_seq=4,
            )
        assert caught.value.key == taken.id
    assert await store.get_messages(ANA, session_id="s1") == seen
    assert await _texts(store, BEN) == ["ben"]


async def test_replace_tail_with_one_bad_message_writes_nothing(store: Any) -> None:
    seen = await _filled(store)
    bad = ChatMessage.user("bad", metadata={"nan": float("nan")})
    where = {"session_id": "s1", "after_seq": 0, "expected_last_seq": 4}
    with pytest.raises(InvalidInputError, match=r"messages\[1\]"):
        await store.replace_tail(ANA, messages=[*_turns(1), bad], **where)
    for field in ("after_seq", "expected_last_seq"):
        for value in (-1, None, 1.5, True, 1 << 63):
            with pytest.raises(InvalidInputError) as caught:
                await store.replace_tail(ANA, messages=_turns(1), **{**where, field: value})
            assert caught.value.field == field
    assert await store.get_messages(ANA, session_id="s1") == seen


async def test_a_retry_of_replace_tail_has_no_further_effect(store: Any) -> None:
    seen = await _filled(store)
    new = [ChatMessage.system("a summary"), seen[-1]]
    where = {"session_id": "s1", "after_seq": 1, "expected_last_seq": 4}
    first = await store.replace_tail(ANA, messages=new, **where)
    found = await store.get_messages(ANA, session_id="s1")
    assert await store.replace_tail(ANA, messages=new, **where) == first == 6
    assert await store.get_messages(ANA, session_id="s1") == found
    await store.append(ANA, ChatMessage.user("later"), session_id="s1")
    with pytest.raises(VersionConflictError):
        await store.replace_tail(ANA, messages=new, **where)


async def test_replace_tail_leaves_other_agents_and_events_that_are_no_messages(
    harness: Harness, store: Any
) -> None:
    await _filled(store)
    await store.append(BEN, ChatMessage.user("ben"), session_id="s1")
    other = harness.store(CONTRACT, tenant="other")
    await other.append(ANA, ChatMessage.user("theirs"), session_id="s1")
    has_note = await _note(harness, "kept")
    await store.replace_tail(
        ANA, session_id="s1", after_seq=0, messages=_turns(1, "new"), expected_last_seq=4
    )
    assert await _texts(store) == ["new 0"]
    assert await _texts(store, BEN) == ["ben"]
    assert await _texts(other) == ["theirs"]
    if has_note:
        events = await harness.store("episodes").recent(ANA, session_id="s1")
        assert [one.type for one in events] == ["note", "message"]


async def test_of_concurrent_replacers_who_expect_the_same_number_one_wins(store: Any) -> None:
    await _filled(store)
    outcomes = await asyncio.gather(
        *(
            store.replace_tail(
                ANA,
                session_id="s1",
                after_seq=0,
                messages=_turns(2, f"by {n},"),
                expected_last_seq=4,
            )
            for n in range(8)
        ),
        return_exceptions=True,
    )
    [winner] = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Exception)]
    lost = {type(outcome) for n, outcome in enumerate(outcomes) if n != winner}
    assert lost == {VersionConflictError}
    assert await _texts(store) == [f"by {winner}, 0", f"by {winner}, 1"]
