from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.memory.compaction import (
    SUMMARY_KEY,
    SlidingWindow,
    Strategy,
    SummaryCheckpoint,
    TokenBudget,
    TrimToolResults,
    compact,
    compact_async,
    estimate_tokens,
)
from holdfast.values.content import (
    ChatMessage,
    ImageBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from holdfast.values.errors import InvalidInputError

CALL_IDS = st.sampled_from(["c1", "c2", "c3"])
TEXTS = st.sampled_from(["", "yes", "word " * 20, "x" * 900])


def _blocks(*kinds: st.SearchStrategy[object]) -> st.SearchStrategy[list[object]]:
    return st.lists(st.one_of(*kinds), max_size=3)


TEXT = st.builds(TextBlock, TEXTS)
CALL = st.builds(ToolUseBlock, id=CALL_IDS, name=st.just("search"))
RESULT = st.builds(
    ToolResultBlock, CALL_IDS, st.lists(TEXT | st.just(ImageBlock(data=b"x" * 300)), max_size=2)
)
TRANSCRIPTS = st.lists(
    st.one_of(
        st.builds(lambda b: ChatMessage("system", b), _blocks(TEXT)),
        st.builds(lambda b: ChatMessage("user", b), _blocks(TEXT)),
        st.builds(lambda b: ChatMessage("assistant", b), _blocks(TEXT, CALL)),
        st.builds(lambda b: ChatMessage("tool", b), _blocks(RESULT, CALL)),
    ),
    max_size=14,
)
STRATEGIES = st.lists(
    st.one_of(
        st.builds(SlidingWindow, limit=st.integers(0, 8)),
        st.builds(TrimToolResults, keep_last=st.integers(0, 3), max_characters=st.integers(0, 100)),
        st.builds(
            SummaryCheckpoint,
            st.sampled_from([lambda _old: "short", lambda _old: "long " * 400]),
            keep_last=st.integers(0, 3),
        ),
        st.just(TokenBudget()),
    ),
    max_size=4,
)


def _cost(messages: list[ChatMessage]) -> int:
    return sum(map(estimate_tokens, messages))


def _pairs(messages: list[ChatMessage]) -> list[tuple[str, str]]:
    """Which message answers which: a result belongs to the latest call of its id before it."""
    owner: dict[str, str] = {}
    pairs = []
    for message in messages:
        pairs += [(owner[r.tool_use_id], message.id) for r in message.tool_results
                  if r.tool_use_id in owner]  # fmt: skip
        owner |= {call.id: message.id for call in message.tool_uses}
    return pairs


@settings(max_examples=400, deadline=None)
@given(TRANSCRIPTS, st.integers(0, 1200), STRATEGIES)
def test_compaction_keeps_its_promises_on_any_transcript(
    transcript: list[ChatMessage], budget: int, strategies: list[Strategy]
) -> None:
    source = copy.deepcopy(transcript)
    view = compact(transcript, budget, strategies=strategies)

    assert transcript == source, "the source was changed"

    kept = {message.id for message in view}
    for call, answer in _pairs(transcript):
        assert (call in kept) == (answer in kept), "a call was separated from its result"

    system = [message for message in transcript if message.role == "system"]
    assert [
        one for one in view if one.role == "system" and SUMMARY_KEY not in one.metadata
    ] == system

    # What a system message is bound to by a tool call stays with it, so it counts as fixed too.
    fixed = {message.id for message in system}
    while more := {b for pair in _pairs(transcript) for b in pair if set(pair) & fixed} - fixed:
        fixed |= more
    if _cost([one for one in transcript if one.id in fixed]) <= budget:
        assert _cost(view) <= budget, "over the budget although it was possible to be within"

    order = [message.id for message in transcript]
    places = [order.index(one.id) for one in view if one.id in order]
    assert places == sorted(places), "the order was changed"


def test_a_transcript_that_fits_is_returned_whole() -> None:
    turns = [ChatMessage.user("hello"), ChatMessage.tool("c1", "x" * 2000)]
    assert compact(turns, 10_000) == turns


def test_the_newest_turns_are_the_ones_kept() -> None:
    turns = [ChatMessage.user(f"turn {at}") for at in range(50)]
    view = compact(turns, 200)
    assert view == turns[-len(view) :]
    assert 0 < len(view) < 50


def test_old_tool_results_are_trimmed_before_turns_are_dropped() -> None:
    turns = [
        ChatMessage.assistant([ToolUseBlock(id="c1", name="read")]),
        ChatMessage.tool("c1", "x" * 8000),
        ChatMessage.user("and?"),
    ]
    view = compact(turns, 400, strategies=[TrimToolResults(keep_last=0)])
    assert [one.id for one in view] == [one.id for one in turns]
    assert "trimmed: 8,000 characters" in view[1].text
    assert view[1].tool_results[0].tool_use_id == "c1"


def test_a_summary_takes_the_place_of_what_it_summarises() -> None:
    seen: list[ChatMessage] = []

    def summarise(old: list[ChatMessage]) -> str:
        seen.extend(old)
        return "they talked"

    turns = [ChatMessage.system("rules"), *(ChatMessage.user("x" * 400) for _ in range(6))]
    view = compact(turns, 500, strategies=[SummaryCheckpoint(summarise, keep_last=2)])
    assert seen == turns[1:5]
    assert [one.role for one in view] == ["system", "system", "user", "user"]
    assert view[1].metadata == {SUMMARY_KEY: 4}
    assert view[2:] == turns[5:]


def test_nothing_is_summarised_while_everything_fits() -> None:
    def never(_old: list[ChatMessage]) -> str:
        raise AssertionError("asked for a summary")

    turns = [ChatMessage.user("x")] * 3
    assert compact(turns, 10_000, strategies=[SummaryCheckpoint(never)]) == turns


@pytest.mark.asyncio
async def test_a_summariser_may_be_a_coroutine_function() -> None:
    async def ask(old: list[ChatMessage]) -> str:
        return f"{len(old)} turns"

    turns = [ChatMessage.user("x" * 400) for _ in range(6)]
    view = await compact_async(turns, 500, strategies=[SummaryCheckpoint(ask)])
    assert view[0].text.endswith("4 turns")
    with pytest.raises(InvalidInputError, match="compact_async"):
        compact(turns, 500, strategies=[SummaryCheckpoint(ask)])


def test_the_token_counter_is_pluggable() -> None:
    turns = [ChatMessage.user("word " * n) for n in (5, 4, 3)]
    view = compact(turns, 7, count_tokens=lambda message: len(message.text.split()))
    assert view == turns[1:]


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        compact([], -1)
    assert caught.value.field == "budget"


@pytest.mark.parametrize(
    ("messages", "strategies", "field"),
    [
        ("abc", [TokenBudget()], "messages"),
        (5, [TokenBudget()], "messages"),
        (["abc"], [TokenBudget()], "messages[0]"),
        ([], 5, "strategies"),
        ([], [TokenBudget(), 5], "strategies[1]"),
        ([], [TokenBudget], "strategies[0]"),
    ],
)
def test_what_cannot_be_compacted_is_refused_by_name(
    messages: Any, strategies: Any, field: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        compact(messages, 100, strategies=strategies)
    assert caught.value.field == field
