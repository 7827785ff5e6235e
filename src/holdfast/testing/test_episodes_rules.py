"""The promises of ``EpisodicMemory``: the rules of recall, the same on every engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.embedders import ContextEmbedder
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage, ToolUseBlock
from holdfast.values.events import Event, Recalled
from holdfast.values.identity import ALL_AGENTS, AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
BEN = AgentId("writer", "ben")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def _said(
    name: str, text: str, *, session: str = "s1", agent: AgentId = ANA, when: datetime = NOON
) -> Event:
    return Event.of_message(agent, session, ChatMessage.user(text, name=name, created_at=when))


def _note(note: str, *, session: str = "s1", **more: Any) -> Event:
    return Event(ANA, session, "observation", {"note": note}, occurred_at=NOON, **more)


def _texts(found: list[Recalled]) -> list[str]:
    return [
        one.event.to_message().text if one.event.type == "message" else one.event.payload["note"]
        for one in found
    ]


def _by_text(found: list[Recalled]) -> dict[str, Recalled]:
    return dict(zip(_texts(found), found, strict=True))


async def test_an_answer_is_found_by_the_words_of_its_question(store: Any) -> None:
    await store.append([_said("Ana", "Where is the harbour?"), _said("Ben", "Behind the hill.")])
    found = _by_text(await store.recall(ANA, "harbour"))
    assert set(found) == {"Where is the harbour?", "Behind the hill."}
    assert found["Where is the harbour?"].found_by == ("lexical",)
    assert found["Behind the hill."].found_by == ("lexical", "answer")
    # A word that is in both is its own.
    await store.append([_said("Ana", "Which tide?"), _said("Ben", "The low tide.")])
    assert (await store.recall(ANA, "tide"))[0].found_by == ("lexical",)


async def test_only_the_nearest_of_the_three_utterances_before_lends_and_only_a_question(
    store: Any,
) -> None:
    asked = [_said("Ana", "Where is the harbour?")]
    twice = [_said("Ben", "Well."), _said("Ben", "Let me see."), _said("Ben", "Behind the hill.")]
    await store.append([*asked, *twice])
    assert len(await store.recall(ANA, "harbour")) == 4
    await store.append([_said("Ben", "That is all.")])
    assert len(await store.recall(ANA, "harbour")) == 4
    await store.append([_said("Ana", "I see the moon."), _said("Ben", "Nice.")])
    assert _texts(await store.recall(ANA, "moon")) == ["I see the moon."]
    await store.append([_said("Ana", "Thanks."), _said("Ben", "Bye.")])
    assert len(await store.recall(ANA, "harbour")) == 4


async def test_tool_messages_and_other_events_are_looked_through_for_a_question(
    store: Any,
) -> None:
    call = ChatMessage.assistant([ToolUseBlock(id="c1", name="map", input={})])
    result = ChatMessage.tool("c1", "a map")
    between = [Event.of_message(ANA, "s1", one) for one in (call, result)]
    notes = [_note(f"note {at}") for at in range(5)]
    await store.append([_said("Ana", "Where is the harbour?"), *between, *notes])
    await store.append([_said("Ben", "Behind the hill.")])
    assert "Behind the hill." in _texts(await store.recall(ANA, "harbour"))


async def test_an_answer_borrows_from_at_most_256_events_before_it(store: Any) -> None:
    for session, notes in (("near", 255), ("far", 256)):
        await store.append([_said("Ana", "Where is the harbour?", session=session)])
        await store.append([_note(f"note {at}", session=session) for at in range(notes)])
        await store.append([_said("Ben", f"Behind {session}.", session=session)])
    found = _texts(await store.recall(ANA, "harbour"))
    assert "Behind near." in found
    assert "Behind far." not in found


async def test_an_answer_borrows_only_in_its_own_session(store: Any) -> None:
    await store.append([_said("Ana", "Where is the harbour?")])
    await store.append([_said("Ben", "Behind the hill.", session="s2")])
    assert _texts(await store.recall(ANA, "harbour")) == ["Where is the harbour?"]
    mine, theirs = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "bob"))
    await mine.append([_said("Ana", "Where is the lighthouse?", session="s3")])
    await theirs.append([_said("Ben", "On the cliff.", session="s3")])
    assert _texts(await mine.recall(ANA, "lighthouse")) == ["Where is the lighthouse?"]
    assert await theirs.recall(ANA, "lighthouse") == []


async def test_an_answer_borrows_only_from_its_own_agent(store: Any) -> None:
    await store.append([_said("Ana", "Where is the harbour?")])
    await store.append([_said("Ben", "Behind the hill.", agent=BEN)])
    assert _texts(await store.recall(ALL_AGENTS, "harbour")) == ["Where is the harbour?"]
    await store.append([_said("Cyd", "Over there.")])
    assert set(_texts(await store.recall(ALL_AGENTS, "harbour"))) == {
        "Where is the harbour?",
        "Over there.",
    }


async def test_filters_narrow_the_hits_and_not_what_is_borrowed(store: Any) -> None:
    later = NOON + timedelta(hours=1)
    await store.append([_said("Ana", "Where is the harbour?")])
    await store.append([_said("Ben", "Behind the hill.", when=later)])
    assert _texts(await store.recall(ANA, "harbour", since=later)) == ["Behind the hill."]
    assert _texts(await store.recall(ANA, "harbour", where={"name": "Ben"})) == ["Behind the hill."]


async def test_what_was_cleared_is_not_borrowed_any_more(store: Any) -> None:
    asked = _said("Ana", "Where is the harbour?")
    asked = Event(ANA, "s1", "message", asked.payload, run_id="r1", occurred_at=NOON)
    await store.append([_said("Ana", "Is it far from the moon?"), asked])
    answers = ["Behind", "the hill", "and left"]
    await store.append([_said("Ben", text) for text in answers])
    assert len(await store.recall(ANA, "harbour")) == 4
    await store.clear("s1", run_id="r1")
    assert await store.recall(ANA, "harbour") == []
    # What is left of the log is what counts: the question before lends now.
    assert set(_texts(await store.recall(ANA, "moon"))) == {"Is it far from the moon?", *answers}
    await store.clear("s1", types=["message"])
    assert await store.recall(ANA, "moon") == []


async def test_what_was_popped_or_replaced_is_not_borrowed_any_more(harness: Harness) -> None:
    store, history = harness.store(CONTRACT), harness.store("history")
    await store.append([_said("Ana", "Where is the harbour?"), _said("Ben", "Behind the hill.")])
    assert len(await store.recall(ANA, "harbour")) == 2
    await history.pop(ANA, session_id="s1")
    await history.pop(ANA, session_id="s1")
    await store.append([_said("Ben", "Behind the tree.")])
    assert await store.recall(ANA, "harbour") == []
    asked, answer = _said("Ana", "Where is the tide?"), _said("Ben", "Gone.")
    await store.append([asked, answer])
    assert len(await store.recall(ANA, "tide")) == 2
    messages = await history.get_messages(ANA, session_id="s1")
    await history.replace_tail(
        ANA,
        session_id="s1",
        after_seq=messages[0].seq,
        messages=[answer.to_message()],
        expected_last_seq=messages[-1].seq,
    )
    assert await store.recall(ANA, "tide") == []
    assert _texts(await store.recall(ANA, "gone")) == ["Gone."]


async def test_an_embedder_that_reads_context_reads_nothing_that_was_cleared(
    harness: Harness,
) -> None:
    embedder = ContextEmbedder()
    store = harness.store(CONTRACT, embedder=embedder)
    asked = Event(ANA, "s1", "message", _said("Ana", "harbour?").payload, run_id="r1")
    await store.append([_said("Ana", "moon"), asked, _said("Ben", "hill")])
    await store.recall(ANA, "harbour")
    turns = [("", "Ana: moon"), ("Ana: moon", "Ana: harbour?"), ("Ana: harbour?", "Ben: hill")]
    assert sorted(embedder.embedded) == sorted(turns)
    await store.clear("s1", run_id="r1")
    embedder.embedded.clear()
    found = _by_text(await store.recall(ANA, "harbour"))
    assert ("Ana: moon", "Ben: hill") in embedder.embedded
    assert not any("harbour" in context for context, _ in embedder.embedded)
    assert "answer" not in found["hill"].found_by


async def test_an_event_is_found_by_its_day(store: Any) -> None:
    may = datetime(2023, 5, 8, 13, tzinfo=UTC)
    await store.append([_said("Ana", "It rained.", when=may), _said("Ben", "Not here.")])
    for asked in ("what happened on 8 May 2023?", "May", "2023"):
        assert _texts(await store.recall(ANA, asked)) == ["It rained."]
    # The day is that of UTC, whatever the zone of the time.
    east = datetime.fromisoformat("2023-07-01T01:00:00+02:00")
    await store.append([_said("Ana", "Dry.", when=east)])
    assert _texts(await store.recall(ANA, "June")) == ["Dry."]


async def test_a_question_that_names_one_speaker_prefers_what_that_speaker_said(
    store: Any,
) -> None:
    # Old Ben's text is longer, so that without the rule it ranks lower.
    await store.append([_said("Ana", "tide", session="s1")])
    await store.append([_said("Old Ben", "the tide was seen from there", session="s2")])
    found = await store.recall(ANA, "What did old ben say of the tide?")
    assert found[0].event.payload["name"] == "Old Ben"
    assert found[0].scores["speaker"] == pytest.approx(0.15 * found[0].scores["lexical"])
    assert "speaker" not in found[1].scores
    both = await store.recall(ANA, "What did Ana and Old Ben say of the tide?")
    assert all("speaker" not in one.scores for one in both)
    # A role is no name.
    await store.append([Event.of_message(ANA, "s3", ChatMessage.user("tide"))])
    assert all("speaker" not in one.scores for one in await store.recall(ANA, "user tide"))


async def test_an_event_ranks_higher_in_a_session_where_more_was_found(store: Any) -> None:
    await store.append([_note("tide one", session="a")])
    notes = [_note(f"{word} {at}", session="b") for at in range(6) for word in ("tide", "x", "y")]
    spread = [one for at, one in enumerate(notes) for one in [one, *_fill(at)]]
    await store.append(spread)
    found = await store.recall(ANA, "tide", limit=7)
    assert [one.event.session_id for one in found] == [*"bbbbbb", "a"]
    assert found[0].scores["session"] > found[-1].scores["session"] > 0
    assert "near" not in found[-1].scores


def _fill(at: int) -> list[Event]:
    """Events without the word, so that no two hits are within four events of each other."""
    return [_note(f"moon {at} {more}", session="b") for more in range(4)]


async def test_an_event_beside_others_that_were_found_ranks_higher(store: Any) -> None:
    words = ["tide", "x", "x", "x", "x", "x", "tide", "tide"]
    await store.append([_note(word) for word in words])
    found = await store.recall(ANA, "tide")
    assert [one.event.seq for one in found] == [7, 8, 1]
    base = found[2].scores["lexical"] + found[2].scores["session"]
    assert found[0].scores["near"] == pytest.approx(0.1 * base)
    assert "near" not in found[2].scores


async def test_an_event_that_asks_ranks_below_one_that_states(store: Any) -> None:
    await store.append([_said("Ana", "tide?"), _said("Ana", "tide", session="s2")])
    found = await store.recall(ANA, "tide")
    assert _texts(found) == ["tide", "tide?"]
    assert found[0].scores["lexical"] == found[1].scores["lexical"]
    for mark in ("tide\uff1f", "tide\u061f", "tide?**", "\u03b1 tide;"):
        await store.clear("s1")
        await store.append([_said("Ana", mark)])
        assert _texts(await store.recall(ANA, "tide")) == ["tide", mark]


async def test_equal_scores_are_ordered_by_session_epoch_and_seq(store: Any) -> None:
    await store.append([_note("tide", session="b", id="e1"), _note("tide", session="a", id="e2")])
    assert [one.event.id for one in await store.recall(ANA, "tide")] == ["e2", "e1"]
    assert [one.event.id for one in await store.recall(ANA, "tide", limit=1)] == ["e2"]


async def test_equal_scores_at_the_last_candidate_are_ordered_by_session_epoch_and_seq(
    store: Any,
) -> None:
    sessions = [f"s{at:03}" for at in range(130)]
    # The later sessions are written first, so that no order of arrival helps.
    for session in reversed(sessions):
        await store.append([_note("tide", session=session)])
    found = await store.recall(ANA, "tide", limit=100)
    assert [one.event.session_id for one in found] == sessions[:100]
    found = await store.recall(ANA, "tide", limit=120)
    assert [one.event.session_id for one in found] == sessions[:120]


class _Given:
    """An embedder for vectors that the writers gave: it embeds the question alone."""

    name = "given"
    dimension = 2
    lexical_weight = 0.5

    async def embed(self, texts: Any, *, mode: str = "passage") -> list[list[float]]:
        """The first axis."""
        return [[1.0, 0.0] for _ in texts if mode]


async def test_a_candidate_of_one_arm_has_its_score_of_the_other_arm_too(
    harness: Harness,
) -> None:
    store = harness.store(CONTRACT, embedder=_Given())
    # The last is the best by words and the worst by meaning.
    notes = [_note(f"tide {'more words ' * 3}", session=f"s{at:03}") for at in range(120)]
    vectors = [[1.0, at / 1000] for at in range(120)]
    await store.append([*notes, _note("tide tide", session="t")], embeddings=[*vectors, [0.1, 1.0]])
    found = await store.recall(ANA, "tide", limit=121)
    assert len(found) == 121
    assert all({"lexical", "semantic"} <= set(one.scores) for one in found)
    few = {one.event.session_id: one for one in await store.recall(ANA, "tide", limit=100)}
    assert few["t"].scores["semantic"] == pytest.approx(0.0995, abs=1e-4)
    near = {one.event.session_id: one for one in await store.recall(ANA, "unheard", limit=3)}
    assert set(near) == {"s000", "s001", "s002"}
    assert all(one.found_by == ("semantic",) for one in near.values())


async def test_recall_with_filters_and_owners_returns_k_results_whenever_k_match(
    store: Any,
) -> None:
    ana, bob = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "bob"))
    loud = [_note("tide tide tide", session=f"s{at}") for at in range(150)]
    await bob.append(loud)
    await ana.append([*loud, *(_note(f"tide {at} and more", session="quiet") for at in range(9))])
    for how in ({"session_id": "quiet"}, {"session_id": "quiet", "types": ["observation"]}):
        assert len(await ana.recall(ANA, "tide", limit=7, **how)) == 7
        assert len(await ana.recall(ALL_AGENTS, "tide", limit=7, **how)) == 7
        assert await bob.recall(ANA, "tide", limit=7, **how) == []
    notes = [{"note": f"tide {at} and more"} for at in range(9)]
    chosen = {"$or": notes}
    assert len(await ana.recall(ANA, "tide", limit=7, where=chosen)) == 7
    assert await bob.recall(ANA, "tide", limit=7, where=chosen) == []


async def test_any_text_and_any_name_is_indexed(store: Any) -> None:
    names = ["n" * 100_000, "\x1fowner", "~", "a b c d e f g h", "\u0130" * 300, "?"]
    for at, name in enumerate(names):
        await store.append([_said(name, f"tide {at}")])
    await store.append([_said("Ana", "? " * 500_000 + "harbour")])
    await store.append([_said("Ben", "tide at last")])
    assert len(await store.recall(ANA, "tide", limit=20)) == len(names) + 1
    assert _texts(await store.recall(ANA, "harbour last", limit=1)) == ["tide at last"]
    for name in names:
        await store.recall(ANA, f"tide {name[:1000]}")


async def test_any_number_of_speakers_is_kept_apart(store: Any) -> None:
    await store.append([_said(f"Speaker{at}", "tide") for at in range(10_000)])
    [first] = await store.recall(ANA, "tide speaker7777", limit=1)
    assert first.event.payload["name"] == "Speaker7777"
    assert first.scores["speaker"] > 0
