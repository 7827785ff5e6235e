"""The promises of ``HistoryProvider``."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.values.content import (
    AudioBlock,
    ChatMessage,
    ContentBlock,
    DataBlock,
    DocumentBlock,
    ErrorBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    VideoBlock,
)
from holdfast.values.errors import InvalidInputError
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


async def test_a_message_comes_back_exactly_as_it_was_appended(store: Any) -> None:
    message = ChatMessage(
        "assistant",
        [TextBlock("a\x00b \U0001f980 שלום")],
        name="ana",
        metadata={"b": 1e16, "a": [-0.0, None, True, {"z": 1, "y": 2}]},
        created_at=datetime(2029, 12, 31, 23, 59, 59, 123456, tzinfo=UTC),
    )
    await store.append(ANA, message, session_id="s1", run_id="r1")
    [back] = await store.get_messages(ANA, session_id="s1")
    assert back == message
    assert repr(back.metadata) == repr(message.metadata)


async def test_every_kind_of_content_block_survives_the_round_trip(store: Any) -> None:
    blocks: list[ContentBlock] = [
        TextBlock(""),
        ImageBlock(url="https://example.org/a.png", media_type="image/png"),
        ImageBlock(data=bytes(range(256)), name="all bytes"),
        AudioBlock(data=b""),
        VideoBlock(blob_ref="b_1"),
        DocumentBlock(blob_ref="b_2", name="report.pdf"),
        ToolUseBlock(id="c1", name="search", input={"q": [1, 2.5, None]}),
        ToolResultBlock("c1", [TextBlock("3 hits"), ImageBlock(data=b"x")], is_error=True),
        ReasoningBlock("hm", signature="sig"),
        DataBlock({"rows": [[1], []]}),
        DataBlock(None),
        ErrorBlock("no", code="429"),
    ]
    await store.append(ANA, ChatMessage.assistant(blocks), session_id="s1")
    [back] = await store.get_messages(ANA, session_id="s1")
    assert back.content == blocks


async def test_a_block_of_a_future_version_survives_the_round_trip(store: Any) -> None:
    blocks = [
        UnknownBlock({"type": "hologram", "frames": [1, {"deep": None}]}),
        UnknownBlock({"type": "text", "text": "hi", "tone": "new field of a known type"}),
    ]
    await store.append(ANA, ChatMessage.user(blocks), session_id="s1")
    [back] = await store.get_messages(ANA, session_id="s1")
    assert back.content == blocks


async def test_messages_come_back_in_the_order_in_which_they_were_appended(store: Any) -> None:
    # Ids and times that sort the other way round: neither may decide.
    later, earlier = _turns(2)
    earlier = dataclasses.replace(earlier, id="0", created_at=datetime(2001, 1, 1, tzinfo=UTC))
    await store.append(ANA, later, session_id="s1")
    await store.append(ANA, earlier, session_id="s1")
    assert await store.get_messages(ANA, session_id="s1") == [later, earlier]


async def test_one_session_never_sees_anothers_messages(store: Any) -> None:
    await store.append(ANA, ChatMessage.user("here"), session_id="s1")
    await store.append(ANA, ChatMessage.user("there"), session_id="s2")
    assert await _texts(store, session="s1") == ["here"]
    assert await _texts(store, session="s2") == ["there"]


async def test_one_agent_never_sees_anothers_messages_in_the_same_session(store: Any) -> None:
    await store.append(ANA, ChatMessage.user("ana's"), session_id="s1")
    await store.append(BEN, ChatMessage.user("ben's"), session_id="s1")
    assert await _texts(store, ANA) == ["ana's"]
    assert await _texts(store, BEN) == ["ben's"]
    assert await store.count_messages(ANA, session_id="s1") == 1


async def test_a_tenant_can_neither_read_write_nor_detect_anothers_messages(
    harness: Harness, store: Any
) -> None:
    other = harness.store(CONTRACT, tenant="other")
    mine = ChatMessage.user("mine")
    await store.append(ANA, mine, session_id="s1")
    assert await other.get_messages(ANA, session_id="s1") == []
    assert await other.count_messages(ANA, session_id="s1") == 0
    # The same id with another body would be a conflict if the other tenant could feel it.
    await other.append(ANA, dataclasses.replace(mine, content=[]), session_id="s1")
    await other.clear(ANA, session_id="s1")
    assert await store.get_messages(ANA, session_id="s1") == [mine]


async def test_an_agent_given_as_text_is_the_same_as_its_agentid(store: Any) -> None:
    await store.append("writer/ana", ChatMessage.user("hello"), session_id="s1")
    assert await _texts(store, ANA) == ["hello"]
    assert await store.count_messages("writer/ana", session_id="s1") == 1


async def test_an_unknown_session_has_no_messages(store: Any) -> None:
    assert await store.get_messages(ANA, session_id="nowhere") == []
    assert await store.count_messages(ANA, session_id="nowhere") == 0
    assert await store.get_messages(ANA, session_id="nowhere", recent_limit=3) == []


async def test_append_many_is_contiguous_and_in_order(store: Any) -> None:
    batches = [_turns(20, prefix=f"batch {at}") for at in range(5)]
    await asyncio.gather(*(store.append_many(ANA, batch, session_id="s1") for batch in batches))
    found = await _texts(store)
    assert len(found) == 100
    for batch in batches:
        start = found.index(batch[0].text)
        assert found[start : start + 20] == [message.text for message in batch]


async def test_append_many_is_atomic_one_bad_message_and_none_is_stored(store: Any) -> None:
    good, bad = ChatMessage.user("good"), ChatMessage.user("bad", metadata={"x": float("nan")})
    with pytest.raises(InvalidInputError) as caught:
        await store.append_many(ANA, [good, bad], session_id="s1")
    assert "messages[1]" in caught.value.field
    assert await store.get_messages(ANA, session_id="s1") == []


async def test_append_many_of_an_empty_list_does_nothing(store: Any) -> None:
    await store.append_many(ANA, [], session_id="s1")
    assert await store.count_messages(ANA, session_id="s1") == 0


async def test_concurrent_appenders_get_one_total_order_with_nothing_lost(store: Any) -> None:
    writers = [_turns(25, prefix=f"writer {at}") for at in range(8)]

    async def write(messages: list[ChatMessage]) -> None:
        for message in messages:
            await store.append(ANA, message, session_id="s1")

    await asyncio.gather(*map(write, writers))
    found = await store.get_messages(ANA, session_id="s1")
    assert len(found) == 200
    assert [one.seq for one in found] == sorted({one.seq for one in found})
    for messages in writers:
        ids = {message.id for message in messages}
        assert [one for one in found if one.id in ids] == messages


async def test_a_limit_takes_from_the_oldest(store: Any) -> None:
    await store.append_many(ANA, _turns(5), session_id="s1")
    assert await _texts(store, limit=2) == ["turn 0", "turn 1"]
    assert len(await _texts(store, limit=99)) == 5


async def test_an_offset_counts_from_the_oldest(store: Any) -> None:
    await store.append_many(ANA, _turns(5), session_id="s1")
    assert await _texts(store, offset=3) == ["turn 3", "turn 4"]
    assert await _texts(store, limit=2, offset=1) == ["turn 1", "turn 2"]


async def test_an_offset_beyond_the_end_is_an_empty_result(store: Any) -> None:
    await store.append_many(ANA, _turns(5), session_id="s1")
    assert await _texts(store, offset=5) == []
    assert await _texts(store, limit=2, offset=2**40) == []


async def test_a_limit_of_zero_is_an_empty_result(store: Any) -> None:
    await store.append_many(ANA, _turns(3), session_id="s1")
    assert await _texts(store, limit=0) == []
    assert await _texts(store, recent_limit=0) == []


async def test_a_negative_limit_or_offset_is_an_error_that_names_it(store: Any) -> None:
    for name in ("limit", "offset", "recent_limit", "after_seq"):
        with pytest.raises(InvalidInputError) as caught:
            await store.get_messages(ANA, session_id="s1", **{name: -1})
        assert caught.value.field == name


async def test_recent_limit_takes_the_newest_and_keeps_them_ascending(store: Any) -> None:
    await store.append_many(ANA, _turns(5), session_id="s1")
    assert await _texts(store, recent_limit=2) == ["turn 3", "turn 4"]
    assert len(await _texts(store, recent_limit=99)) == 5


async def test_recent_limit_excludes_limit_offset_and_after_seq(store: Any) -> None:
    for other in ({"limit": 1}, {"offset": 1}, {"after_seq": 1}):
        with pytest.raises(InvalidInputError) as caught:
            await store.get_messages(ANA, session_id="s1", recent_limit=1, **other)
        assert caught.value.field == "recent_limit"


async def test_after_seq_is_a_cursor(store: Any) -> None:
    await store.append_many(ANA, _turns(5), session_id="s1")
    page = await store.get_messages(ANA, session_id="s1", limit=2)
    seen = [one.text for one in page]
    while page:
        page = await store.get_messages(ANA, session_id="s1", limit=2, after_seq=page[-1].seq)
        seen += [one.text for one in page]
    assert seen == [f"turn {at}" for at in range(5)]


async def test_messages_carry_their_sequence_number_and_it_never_decreases(store: Any) -> None:
    await store.append_many(ANA, _turns(3), session_id="s1")
    seqs = [one.seq for one in await store.get_messages(ANA, session_id="s1")]
    assert all(isinstance(seq, int) for seq in seqs)
    assert seqs == sorted(set(seqs))


async def test_sequence_numbers_are_never_reused_after_a_clear(store: Any) -> None:
    await store.append_many(ANA, _turns(3), session_id="s1")
    used = {one.seq for one in await store.get_messages(ANA, session_id="s1")}
    await store.clear(ANA, session_id="s1")
    await store.append(ANA, ChatMessage.user("after"), session_id="s1")
    [after] = await store.get_messages(ANA, session_id="s1")
    assert after.seq > max(used)


async def test_count_messages_counts_what_get_messages_returns(store: Any) -> None:
    await store.append_many(ANA, _turns(7), session_id="s1", run_id="r1")
    await store.append_many(ANA, _turns(2), session_id="s1", run_id="r2")
    assert await store.count_messages(ANA, session_id="s1") == 9
    await store.clear_run(ANA, session_id="s1", run_id="r1")
    assert await store.count_messages(ANA, session_id="s1") == 2


async def test_clear_removes_the_messages_of_that_agent_and_session_only(store: Any) -> None:
    for agent in (ANA, BEN):
        for session in ("s1", "s2"):
            await store.append(agent, ChatMessage.user("x"), session_id=session)
    await store.clear(ANA, session_id="s1")
    counts = [
        await store.count_messages(agent, session_id=session)
        for agent in (ANA, BEN)
        for session in ("s1", "s2")
    ]
    assert counts == [0, 1, 1, 1]


async def test_clear_is_idempotent(store: Any) -> None:
    await store.clear(ANA, session_id="nowhere")
    await store.append(ANA, ChatMessage.user("x"), session_id="s1")
    await store.clear(ANA, session_id="s1")
    await store.clear(ANA, session_id="s1")
    assert await store.count_messages(ANA, session_id="s1") == 0


@pytest.mark.needs("episodes")
async def test_clear_leaves_events_that_are_no_messages(harness: Harness, store: Any) -> None:
    episodes = harness.store("episodes")
    await episodes.append([Event(ANA, "s1", "decision", {"use": "postgres"})])
    await store.append(ANA, ChatMessage.user("x"), session_id="s1")
    await store.clear(ANA, session_id="s1")
    assert [one.type for one in await episodes.recent(ANA, session_id="s1")] == ["decision"]


async def test_clear_run_removes_that_run_only(store: Any) -> None:
    await store.append(ANA, ChatMessage.user("one"), session_id="s1", run_id="r1")
    await store.append(ANA, ChatMessage.user("two"), session_id="s1", run_id="r2")
    await store.append(ANA, ChatMessage.user("none"), session_id="s1")
    await store.append(BEN, ChatMessage.user("ben's"), session_id="s1", run_id="r1")
    await store.append(ANA, ChatMessage.user("there"), session_id="s2", run_id="r1")
    await store.clear_run(ANA, session_id="s1", run_id="r1")
    assert await _texts(store) == ["two", "none"]
    assert await _texts(store, BEN) == ["ben's"]
    assert await _texts(store, session="s2") == ["there"]


async def test_clear_run_of_an_empty_run_id_is_refused(store: Any) -> None:
    await store.append(ANA, ChatMessage.user("untagged"), session_id="s1")
    with pytest.raises(InvalidInputError) as caught:
        await store.clear_run(ANA, session_id="s1", run_id="")
    assert caught.value.field == "run_id"
    assert await _texts(store) == ["untagged"]


async def test_what_a_store_returns_is_the_callers_to_mutate(store: Any) -> None:
    await store.append(ANA, ChatMessage.user("x", metadata={"k": [1]}), session_id="s1")
    [first] = await store.get_messages(ANA, session_id="s1")
    first.metadata["k"].append(2)
    first.content.clear()
    [again] = await store.get_messages(ANA, session_id="s1")
    assert (again.metadata, again.text) == ({"k": [1]}, "x")


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: Any) -> None:
    message = ChatMessage.user("x", metadata={"k": [1]})
    batch = [message]
    await store.append_many(ANA, batch, session_id="s1")
    message.metadata["k"].append(2)
    batch.clear()
    [stored] = await store.get_messages(ANA, session_id="s1")
    assert stored.metadata == {"k": [1]}


async def test_a_message_of_a_million_characters_comes_back(store: Any) -> None:
    text = "x\x00é" * 1_000 + "x" * 997_000
    await store.append(ANA, ChatMessage.user(text), session_id="s1")
    assert await _texts(store) == [text]


async def test_what_was_appended_is_there_after_reopening(harness: Harness, store: Any) -> None:
    messages = _turns(3)
    await store.append_many(ANA, messages, session_id="s1")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.get_messages(ANA, session_id="s1") == messages
    await again.append(ANA, messages[0], session_id="s1")
    assert await again.count_messages(ANA, session_id="s1") == 3
