"""The promises of ``AgentMemory``: what is written down, and what an agent wakes up with."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.contracts.agent_memory import AgentMemory
from holdfast.testing.embedders import FlakyEmbedder
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.values.wakes import WakeStatus

CONTRACT = "memory"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = "writer/ana"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def memory(harness: Harness) -> AgentMemory:
    """Ana's memory of one session."""
    return harness.memory(ANA, session_id="s1")


def _notes(events: list[Event]) -> list[Any]:
    return [event.payload["note"] for event in events]


async def test_what_was_recorded_comes_back_as_the_most_recent(memory: AgentMemory) -> None:
    await memory.record("decision", {"note": "first"})
    await memory.record("my.own-type", {"note": ["second", None]}, run_id="r1")
    found = await memory.recent()
    assert [(one.type, one.payload, one.run_id) for one in found] == [
        ("decision", {"note": "first"}, ""),
        ("my.own-type", {"note": ["second", None]}, "r1"),
    ]
    assert _notes(await memory.recent(1)) == [["second", None]]
    assert _notes(await memory.recent(types=["decision"])) == ["first"]


async def test_record_returns_the_event_with_its_position(memory: AgentMemory) -> None:
    first = await memory.record("note", {"note": 1}, occurred_at=NOON)
    second = await memory.record("note", {"note": 2})
    assert (first.epoch, first.seq, first.occurred_at) == (1, 1, NOON)
    assert (second.seq, second.session_id, str(second.agent_id)) == (2, "s1", ANA)
    assert await memory.recent() == [first, second]


async def test_a_message_is_recorded_as_it_is_and_is_in_the_transcript(
    harness: Harness, memory: AgentMemory
) -> None:
    said = ChatMessage.user("low tide", name="Bo", metadata={"from": "mail"})
    event = await memory.record("message", said)
    assert (event.id, event.to_message()) == (said.id, said)
    history = harness.store("history")
    assert await history.get_messages(AgentId.parse(ANA), session_id="s1") == [said]
    with pytest.raises(InvalidInputError, match="message"):
        await memory.record("decision", said)


async def test_a_message_of_the_transcript_is_recalled_too(
    harness: Harness, memory: AgentMemory
) -> None:
    said = ChatMessage.user("the tide is low")
    await harness.store("history").append(AgentId.parse(ANA), said, session_id="s9")
    [hit] = await memory.recall("tide")
    assert hit.event.to_message() == said


async def test_the_same_event_id_and_payload_again_is_a_no_op_that_returns_the_first_position(
    memory: AgentMemory,
) -> None:
    first = await memory.record("decision", {"note": 1}, event_id="turn-1", run_id="r1")
    await memory.record("decision", {"note": 2})
    assert await memory.record("decision", {"note": 1}, event_id="turn-1", run_id="r1") == first
    assert _notes(await memory.recent()) == [1, 2]


async def test_the_same_event_id_and_payload_with_another_time_is_the_same_event_and_the_first_time_stays(  # noqa: E501 - the promise
    memory: AgentMemory,
) -> None:
    first = await memory.record("decision", {"note": 1}, event_id="turn-1", occurred_at=NOON)
    said = ChatMessage.user("hello", created_at=NOON)
    message = await memory.record("message", said)
    for when in (NOON, NOON + HOUR, None):
        again = memory.record("decision", {"note": 1}, event_id="turn-1", occurred_at=when)
        assert await again == first
        assert await memory.record("message", said, occurred_at=when) == message
    rebuilt = dataclasses.replace(said, created_at=NOON + HOUR)
    assert await memory.record("message", rebuilt) == message
    assert await memory.record_many([rebuilt]) == [message]
    assert await memory.recent() == [first, message]


async def test_the_same_event_id_with_another_payload_is_a_conflict_and_nothing_is_written(
    memory: AgentMemory,
) -> None:
    await memory.record("decision", {"note": 1}, event_id="turn-1")
    for changed in (
        memory.record("decision", {"note": 2}, event_id="turn-1"),
        memory.record("decision", {"note": 1}, event_id="turn-1", run_id="r2"),
        memory.record("observation", {"note": 1}, event_id="turn-1"),
        memory.record("decision", {"note": 2}, event_id="turn-1", occurred_at=NOON),
    ):
        with pytest.raises(ConflictError):
            await changed
    assert _notes(await memory.recent()) == [1]


async def test_two_equal_records_without_an_event_id_stay_two(memory: AgentMemory) -> None:
    for _ in range(2):
        await memory.record("message", ChatMessage.user("yes"))
        await memory.record("note", {"note": "yes"})
    assert len(await memory.recent()) == 4


async def test_record_many_keeps_the_order_of_its_events(memory: AgentMemory) -> None:
    whole = Event(AgentId.parse(ANA), "s1", "note", {"note": 3}, occurred_at=NOON)
    written = await memory.record_many(
        [("note", {"note": 1}), ChatMessage.user("2"), whole, ("note", {"note": 4})]
    )
    assert [one.seq for one in written] == [1, 2, 3, 4]
    assert await memory.recent() == written
    assert await memory.record_many([]) == []


async def test_record_many_refuses_an_event_of_another_agent_or_session(
    memory: AgentMemory,
) -> None:
    bo = Event(AgentId.parse("writer/bo"), "s1", "note", {})
    other = Event(AgentId.parse(ANA), "s2", "note", {})
    for bad, field in ((bo, "events[1].agent_id"), (other, "events[1].session_id")):
        with pytest.raises(InvalidInputError) as caught:
            await memory.record_many([("note", {"note": 1}), bad])
        assert caught.value.field == field
    wrong: Any = {"type": "note"}
    with pytest.raises(InvalidInputError, match="ChatMessage"):
        await memory.record_many([wrong])
    assert await memory.recent() == []


async def test_record_many_refuses_embeddings_that_are_not_as_many_as_the_events(
    memory: AgentMemory,
) -> None:
    with pytest.raises(InvalidInputError, match="2 events, 1 embeddings"):
        await memory.record_many([("note", {}), ("note", {})], [[1.0, 0.0]])
    assert await memory.recent() == []


async def test_recent_and_between_of_a_session_hold_nothing_of_another(
    harness: Harness, memory: AgentMemory
) -> None:
    await memory.record("note", {"note": "here"}, occurred_at=NOON)
    await harness.memory(ANA, session_id="s2").record("note", {"note": "there"}, occurred_at=NOON)
    assert _notes(await memory.recent()) == ["here"]
    assert _notes(await memory.between(NOON, NOON + HOUR)) == ["here"]


async def test_without_a_session_recent_and_between_hold_everything_the_agent_did(
    harness: Harness,
) -> None:
    for at, session in enumerate(["s1", "s2", None]):
        one = harness.memory(ANA, session_id=session)
        await one.record("note", {"note": at}, occurred_at=NOON + at * HOUR)
    everything = harness.memory(ANA)
    assert everything.session_id is None
    assert _notes(await everything.recent()) == [0, 1, 2]
    assert _notes(await everything.between(NOON, NOON + 2 * HOUR)) == [0, 1]


async def test_what_is_recorded_without_a_session_is_the_agents_own(harness: Harness) -> None:
    own = await harness.memory(ANA).record("note", {"note": "mine"})
    other = await harness.memory("writer/bo").record("note", {"note": "his"})
    assert own.session_id != other.session_id
    longest = "a" * 512
    assert _notes([await harness.memory(longest).record("note", {"note": 1})]) == [1]
    assert _notes(await harness.memory(ANA).recent()) == ["mine"]


async def test_between_takes_the_start_and_leaves_the_end(memory: AgentMemory) -> None:
    for at in range(4):
        await memory.record("note", {"note": at}, occurred_at=NOON + at * HOUR)
    found = await memory.between(NOON + HOUR, NOON + 3 * HOUR)
    assert _notes(found) == [1, 2]
    after = await memory.between(NOON, NOON + 4 * HOUR, cursor=found[0].cursor, limit=1)
    assert _notes(after) == [2]


async def test_state_is_the_sessions_working_memory_and_keys_reads_only_those(
    harness: Harness, memory: AgentMemory
) -> None:
    await memory.state.update({"current_task": "tides", "draft": "long"})
    assert await memory.state.get(keys=["current_task"]) == {"current_task": "tides"}
    short_term = harness.store("short_term")
    assert await short_term.get_state("s1") == {"current_task": "tides", "draft": "long"}
    seen = await memory.state.snapshot()
    await memory.state.set({"step": 1}, expected_version=seen.version)
    await memory.state.update({"step": 2}, delete_keys=["draft"])
    assert await memory.state.get() == {"step": 2}
    await memory.state.clear()
    assert await memory.state.get() == {}


async def test_without_a_session_state_is_a_document_of_the_agents_own(harness: Harness) -> None:
    await harness.memory(ANA).state.update({"goal": "the book"})
    assert await harness.memory(ANA).state.get() == {"goal": "the book"}
    assert await harness.memory("writer/bo").state.get() == {}
    assert await harness.memory(ANA, session_id="s1").state.get() == {}


async def test_facts_are_the_agents_in_every_session(harness: Harness, memory: AgentMemory) -> None:
    fact = await memory.facts.save("Bo sails on Sundays", topic="bo")
    elsewhere = harness.memory(ANA, session_id="s2")
    [found] = await elsewhere.facts.search("who sails?", limit=3)
    assert (found.id, found.topic, found.source) == (fact, "bo", "s1")
    assert await harness.memory("writer/bo").facts.search("sails") == []
    assert await elsewhere.facts.delete(fact)
    assert await memory.facts.get(fact) is None


async def test_hydrate_of_a_new_session_says_so_and_is_empty(
    harness: Harness, memory: AgentMemory
) -> None:
    woken = await memory.hydrate("anything?")
    assert woken.status is WakeStatus.NEW
    assert (woken.state, woken.version, woken.recent, woken.recalled) == ({}, 0, [], [])
    assert (woken.gaps, woken.degraded) == ((), "")
    assert (await harness.memory(ANA).hydrate()).status is WakeStatus.NEW


async def test_hydrate_of_a_known_session_has_its_state_and_its_recent_events(
    harness: Harness, memory: AgentMemory
) -> None:
    for at in range(3):
        await memory.record("note", {"note": at})
    await memory.state.update({"step": 2})
    woken = await memory.hydrate(recent_limit=2)
    assert woken.status is WakeStatus.WARM
    assert (woken.state, _notes(woken.recent), woken.recalled) == ({"step": 2}, [1, 2], [])
    await memory.state.update({"step": 3}, expected_version=woken.version)
    everything = await harness.memory(ANA).hydrate()
    assert (everything.status, _notes(everything.recent)) == (WakeStatus.WARM, [0, 1, 2])


async def test_hydrate_knows_a_session_by_its_state_alone(memory: AgentMemory) -> None:
    await memory.state.set({})
    assert (await memory.hydrate()).status is WakeStatus.WARM


async def test_hydrate_with_a_query_recalls_from_all_sessions(
    harness: Harness, memory: AgentMemory
) -> None:
    for at in range(3):
        one = harness.memory(ANA, session_id=f"old-{at}")
        await one.record("decision", {"note": f"tide table {at}"})
    woken = await memory.hydrate("which tide table?", limit=2)
    assert woken.status is WakeStatus.NEW
    assert len(woken.recalled) == 2
    assert woken.recent == []


async def test_hydrate_with_the_embedder_down_answers_and_says_so(harness: Harness) -> None:
    embedder = FlakyEmbedder(8, down=True)
    memory = harness.memory(ANA, session_id="s1", embedder=embedder)
    await memory.record("note", {"note": "low tide"})
    woken = await memory.hydrate("tide?")
    assert _notes([hit.event for hit in woken.recalled]) == ["low tide"]
    assert "hash-8" in woken.degraded
    embedder.down = False
    assert (await memory.hydrate("tide?")).degraded == ""


async def test_one_agent_never_sees_anothers_memory(harness: Harness, memory: AgentMemory) -> None:
    await memory.record("note", {"note": "the tide is low"})
    bo = harness.memory("writer/bo", session_id="s1")
    assert await bo.recent() == []
    assert await bo.recall("tide") == []
    assert await harness.memory("writer/bo").recent() == []


async def test_one_tenant_never_sees_anothers_memory(harness: Harness, memory: AgentMemory) -> None:
    await memory.record("note", {"note": "the tide is low"})
    await memory.state.update({"step": 1})
    await memory.facts.save("Bo sails")
    other = harness.memory(ANA, session_id="s1", tenant="other")
    woken = await other.hydrate("tide")
    assert woken.status is WakeStatus.NEW
    assert (woken.state, woken.recent, woken.recalled) == ({}, [], [])
    assert await other.facts.search("sails") == []


async def test_a_memory_is_still_there_after_a_reopen(
    harness: Harness, memory: AgentMemory
) -> None:
    await memory.record("decision", {"note": "use postgres"})
    await memory.state.update({"step": 2})
    await memory.facts.save("Bo sails")
    await harness.reopen()
    again = harness.memory(ANA, session_id="s1")
    woken = await again.hydrate("postgres?")
    assert (woken.state, _notes(woken.recent)) == ({"step": 2}, ["use postgres"])
    assert _notes([hit.event for hit in woken.recalled]) == ["use postgres"]
    assert [fact.content for fact in await again.facts.search("sails")] == ["Bo sails"]
