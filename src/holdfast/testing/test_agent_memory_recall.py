"""The promises of ``AgentMemory``: what is recalled, and what of it fits a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.contracts.agent_memory import AgentMemory
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage, ToolUseBlock
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event, Recalled
from holdfast.values.identity import AgentId
from holdfast.values.memory import Assembled

CONTRACT = "memory"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = "writer/ana"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def memory(harness: Harness) -> AgentMemory:
    """Ana's memory of one session."""
    return harness.memory(ANA, session_id="s1")


def _notes(found: list[Recalled]) -> list[Any]:
    return [one.event.payload["note"] for one in found]


def _tokens(message: ChatMessage) -> int:
    return len(message.text.split()) + 2


def _kept(found: Assembled, kind: str) -> list[str]:
    return [item.id for item in found.kept if item.kind == kind]


async def test_recall_finds_what_was_said_in_an_earlier_session(
    harness: Harness, memory: AgentMemory
) -> None:
    old = harness.memory(ANA, session_id="last-week")
    await old.record("message", ChatMessage.user("my sister keeps bees", name="Bo"))
    await memory.record("message", ChatMessage.user("hello again", name="Bo"))
    [hit] = await memory.recall("who keeps bees?", 1)
    assert (hit.event.session_id, hit.event.to_message().text) == (
        "last-week",
        "my sister keeps bees",
    )


async def test_recall_is_narrowed_by_session_type_and_time(
    harness: Harness, memory: AgentMemory
) -> None:
    await memory.record("note", {"note": "tide 1"}, occurred_at=NOON)
    await memory.record("decision", {"note": "tide 2"}, occurred_at=NOON + DAY)
    await harness.memory(ANA, session_id="s2").record("note", {"note": "tide 3"}, occurred_at=NOON)
    assert sorted(_notes(await memory.recall("tide"))) == ["tide 1", "tide 2", "tide 3"]
    assert _notes(await memory.recall("tide", session_id="s2")) == ["tide 3"]
    assert _notes(await memory.recall("tide", types=["decision"])) == ["tide 2"]
    assert _notes(await memory.recall("tide", since=NOON + DAY)) == ["tide 2"]
    assert sorted(_notes(await memory.recall("tide", until=NOON + DAY))) == ["tide 1", "tide 3"]
    wide = await memory.recall("tide", types=["decision"], neighbours=1)
    assert _notes(wide) == ["tide 2"]


async def test_where_narrows_recent_between_and_recall_to_payloads_that_pass(
    memory: AgentMemory,
) -> None:
    for at, status in enumerate(["failed", "done", "failed"]):
        await memory.record(
            "note", {"note": f"tide {at}", "status": status, "at": at}, occurred_at=NOON
        )
    failed: dict[str, Any] = {"where": {"status": "failed"}}
    assert [one.payload["at"] for one in await memory.recent(**failed)] == [0, 2]
    assert [one.payload["at"] for one in await memory.recent(1, **failed)] == [2]
    span = (NOON - DAY, NOON + DAY)
    assert [one.payload["at"] for one in await memory.between(*span, **failed)] == [0, 2]
    assert sorted(_notes(await memory.recall("tide", **failed))) == ["tide 0", "tide 2"]
    # What stands beside a hit is filtered too.
    beside = await memory.recall("tide", where={"at": {"$lt": 1}}, neighbours=1)
    assert _notes(beside) == ["tide 0"]
    for ask in (
        memory.recent(where={"a.b": 1}),
        memory.between(*span, where={"a.b": 1}),
        memory.recall("tide", where={"a.b": 1}),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await ask
        assert caught.value.field == "where.a.b"


async def test_recall_by_vector_finds_the_nearest(memory: AgentMemory) -> None:
    vectors = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
    await memory.record_many([("note", {"note": at}) for at in range(3)], vectors)
    assert _notes(await memory.recall([0.0, 1.0], 2)) == [1, 2]


async def test_every_hit_says_which_arms_found_it_with_a_score_between_0_and_1(
    memory: AgentMemory,
) -> None:
    await memory.record_many([("note", {"note": "low tide"}), ("note", {"note": "tide"})])
    for options in ({}, {"neighbours": 1}, {"recency_weight": 0.5}):
        hits = await memory.recall("low tide", **options)
        scores = [hit.score for hit in hits]
        assert len(hits) == 2
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)
        assert all("lexical" in hit.found_by for hit in hits)
        assert all(set(hit.found_by) <= set(hit.scores) for hit in hits)


async def test_neighbours_bring_in_what_stands_beside_a_hit(memory: AgentMemory) -> None:
    said = ["nothing", "where do the bees live?", "in the garden", "goodbye", "see you"]
    await memory.record_many([("note", {"note": text}) for text in said])
    assert _notes(await memory.recall("bees", 3)) == ["where do the bees live?"]
    found = await memory.recall("bees", 3, neighbours=1)
    assert _notes(found)[0] == "where do the bees live?"
    assert sorted(_notes(found)[1:]) == ["in the garden", "nothing"]
    assert found[1].found_by == ("neighbour",)
    assert len(await memory.recall("bees", 2, neighbours=2)) == 2


async def test_recency_lifts_the_newer_of_two_hits(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    await memory.record("note", {"note": "tide tide tide old"}, occurred_at=now - 30 * DAY)
    await memory.record("note", {"note": "tide new but with more words"}, occurred_at=now)
    assert _notes(await memory.recall("tide"))[0] == "tide tide tide old"
    found = await memory.recall("tide", recency_weight=0.8, half_life_seconds=86_400)
    assert _notes(found)[0] == "tide new but with more words"
    assert found[0].scores["recency"] > found[1].scores["recency"]


async def test_neighbours_and_recency_change_nothing_unless_they_are_asked_for(
    memory: AgentMemory,
) -> None:
    await memory.record_many([("note", {"note": f"tide {at}"}) for at in range(6)])
    plain = await memory.recall("tide 3", 6)
    assert await memory.recall("tide 3", 6, neighbours=0, recency_weight=0.0) == plain
    assert all(set(hit.scores) <= {"lexical", "session", "near"} for hit in plain)


async def test_a_recency_weight_outside_of_0_to_1_is_refused(memory: AgentMemory) -> None:
    for bad in (-0.1, 1.1, float("nan"), True):
        with pytest.raises(InvalidInputError) as caught:
            await memory.recall("tide", recency_weight=bad)
        assert caught.value.field == "recency_weight"
    with pytest.raises(InvalidInputError, match="half_life_seconds"):
        await memory.recall("tide", recency_weight=0.5, half_life_seconds=0)


async def test_assemble_stays_within_its_budget(memory: AgentMemory) -> None:
    await memory.state.update({"plan": "one two three four"})
    for at in range(30):
        await memory.record("message", ChatMessage.user(f"tide {at} " + "word " * (at % 7)))
        await memory.facts.save(f"fact {at} about the tide")
    for budget in (0, 1, 10, 40, 150, 2000):
        found = await memory.assemble("tide", budget, count_tokens=_tokens)
        spent = sum(map(_tokens, found.messages))
        assert spent == found.tokens <= budget
        assert found.budget_tokens == budget
    roomy = await memory.assemble("tide", 100_000)
    assert len(_kept(roomy, "recent")) == 30


async def test_assemble_puts_state_facts_and_recalled_events_before_the_recent_window(
    harness: Harness, memory: AgentMemory
) -> None:
    old = harness.memory(ANA, session_id="old")
    await old.record("decision", {"use": "tide tables"}, occurred_at=NOON)
    await old.record("observation", {"tide": "low"}, occurred_at=NOON - DAY)
    await memory.facts.save("the tide turns twice a day")
    await memory.state.update({"step": 2})
    said = [ChatMessage.user("hello"), ChatMessage.assistant("good day")]
    await memory.record_many(said)
    found = await memory.assemble("tide", 2000)
    assert [one.text for one in found.messages] == [
        'Working state:\n{"step":2}',
        "What you know:\n- the tide turns twice a day",
        (
            "What you remember from earlier:\n"
            "2029-12-31:\n- 12:00 tide: low\n"
            "2030-01-01:\n- 12:00 use: tide tables"
        ),
        "hello",
        "good day",
    ]
    assert found.messages[-2:] == said
    assert [item.kind for item in found.kept if item.kind != "recent"] == [
        "state",
        "fact",
        "recalled",
        "recalled",
    ]


async def test_assemble_shows_nothing_twice(harness: Harness, memory: AgentMemory) -> None:
    old = harness.memory(ANA, session_id="old")
    await old.record("note", {"text": "the tide is low"})
    await old.record("note", {"text": "The  tide is LOW"})
    event = await memory.record("message", ChatMessage.user("tell me about the tide"))
    await memory.facts.save("text: the tide is low")
    found = await memory.assemble("tide", 2000)
    text = "\n".join(one.text for one in found.messages).casefold()
    assert text.count("tell me about the tide") == 1
    assert text.count("the tide is low") == 1
    reasons = {item.id: item.reason for item in found.left_out}
    assert reasons[event.id] == "in the recent window already"
    assert list(reasons.values()).count("says the same as another") == 2


def _earlier(at: int, text: str) -> Event:
    said = ChatMessage.user(text, created_at=NOON + timedelta(hours=at))
    return Event.of_message(AgentId.parse(ANA), "earlier", said)


async def test_assemble_recalls_as_many_events_as_the_budget_may_hold_at_most_limit(
    harness: Harness,
) -> None:
    await harness.store("episodes").append([_earlier(at, f"tide {at}") for at in range(60)])
    memory = harness.memory(ANA, session_id="s1")
    for budget, limit, most in ((400, None, 20), (1000, None, 50), (1000, 7, 7), (0, None, 0)):
        found = await memory.assemble("tide", budget, limit=limit)
        considered = [one for one in (*found.kept, *found.left_out) if one.kind == "recalled"]
        assert len(considered) == most
        assert found.tokens <= budget
    with pytest.raises(InvalidInputError, match="limit"):
        await memory.assemble("tide", 1000, limit=-1)


async def test_assemble_shows_recalled_events_in_the_order_of_time_with_each_day_once(
    harness: Harness,
) -> None:
    said = ["tide tide", "tide of the moon", "tide and a few more words", "tide at last"]
    events = [_earlier(9 * at, text) for at, text in enumerate(said)]
    await harness.store("episodes").append(events)
    memory = harness.memory(ANA, session_id="s1")
    [shown] = (await memory.assemble("tide", 1000)).messages
    assert shown.text.splitlines() == [
        "What you remember from earlier:",
        "2030-01-01:",
        "- 12:00 user: tide tide",
        "- 21:00 user: tide of the moon",
        "2030-01-02:",
        "- 06:00 user: tide and a few more words",
        "- 15:00 user: tide at last",
    ]


async def test_assemble_reports_what_it_left_out_and_why(memory: AgentMemory) -> None:
    events = [
        await memory.record("message", ChatMessage.user(f"{at} " + "word " * 20)) for at in range(5)
    ]
    found = await memory.assemble("nothing of this", 60, count_tokens=_tokens)
    assert _kept(found, "recent") == [events[4].id, events[3].id]
    assert {item.id: (item.kind, item.reason, item.tokens) for item in found.left_out} == {
        event.id: ("recent", "over the budget", 23) for event in events[:3]
    }
    assert [one.id for one in found.messages] == [events[3].id, events[4].id]


async def test_assemble_never_parts_a_tool_call_from_its_result(memory: AgentMemory) -> None:
    call = ChatMessage.assistant([ToolUseBlock(id="c1", name="tides", input={"at": "noon"})])
    result = ChatMessage.tool("c1", "low " * 20)
    last = ChatMessage.user("thanks")
    await memory.record_many([ChatMessage.user("when?"), call, result, last])
    for budget in range(0, 60, 3):
        found = await memory.assemble("zzz", budget, count_tokens=_tokens)
        ids = {one.id for one in found.messages}
        assert (call.id in ids) == (result.id in ids)
    cut = await memory.assemble("zzz", 1000, recent_limit=2, count_tokens=_tokens)
    assert [one.id for one in cut.messages] == [last.id]
    [orphan] = [item for item in cut.left_out if item.kind == "recent"]
    assert (orphan.id, orphan.reason) == (result.id, "its tool call is beyond the window")


class _Backwards:
    """A reranker that prefers what the search puts last."""

    async def rerank(self, question: str, hits: Sequence[Recalled]) -> list[float]:
        """The position of each hit."""
        return [float(at) for at, _ in enumerate(hits) if question]


async def test_explanations_and_rerankers_go_together_with_neighbours_and_recency(
    memory: AgentMemory,
) -> None:
    await memory.record_many([("note", {"note": word}) for word in ("tide tide", "moon", "tide x")])
    plain = await memory.recall("tide", reranker=_Backwards())
    assert [hit.event.payload["note"] for hit in plain] == ["tide x", "tide tide"]
    found = await memory.recall(
        "tide", 3, neighbours=1, recency_weight=0.1, explain=True, reranker=_Backwards()
    )
    why = {hit.event.payload["note"]: hit.explanation for hit in found}
    assert set(why) == {"tide tide", "moon", "tide x"}
    beside, hit = why["moon"], why["tide x"]
    assert beside is not None
    assert hit is not None
    assert (beside.words, set(beside.added)) == ((), {"neighbour"})
    assert (hit.words, hit.arms["lexical"].rank) == (("tide",), 2)
    assert all("recency" in one.scores for one in found)
