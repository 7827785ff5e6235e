"""The promises of ``EpisodicMemory``: recall by words and by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Event, Recalled
from holdfast.values.identity import AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def _event(note: str, *, session: str = "s1", type: str = "observation", **more: Any) -> Event:
    return Event(ANA, session, type, {"note": note}, **more)


def _notes(found: list[Recalled]) -> list[str]:
    return [one.event.payload["note"] for one in found]


class ByTopic:
    """An embedder that knows two topics and no spelling: it finds what shares no word."""

    name = "by-topic"
    dimension = 2
    _sea = frozenset({"tide", "harbour", "ship", "ocean"})

    def __init__(self) -> None:
        self.down = False

    async def embed(self, texts: Sequence[str], *, mode: str = "passage") -> list[list[float]]:
        """Sea or land."""
        if self.down:
            raise ConnectionError(f"no {mode} today")
        return [
            [1.0, 0.1] if any(word in text for word in self._sea) else [0.1, 1.0] for text in texts
        ]


async def test_recall_finds_what_shares_a_word_with_the_query(store: Any) -> None:
    await store.append([_event("the tide is low"), _event("the moon is full")])
    assert _notes(await store.recall(ANA, "when is the tide?")) == ["the tide is low"]
    assert await store.recall(ANA, "volcano") == []


async def test_recall_ranks_the_rarer_word_higher(store: Any) -> None:
    await store.append([_event(f"tide table {at}") for at in range(10)])
    await store.append([_event("harbour table")])
    assert _notes(await store.recall(ANA, "tide harbour"))[0] == "harbour table"


async def test_recall_finds_other_forms_of_a_word(store: Any) -> None:
    await store.append([_event("we were sailing"), _event("nothing")])
    assert _notes(await store.recall(ANA, "SAILED")) == ["we were sailing"]


async def test_recall_finds_an_event_before_any_indexer_could_have_seen_it(store: Any) -> None:
    await store.append([_event("tide one")])
    assert len(await store.recall(ANA, "tide")) == 1
    await store.append([_event("tide two")])
    assert len(await store.recall(ANA, "tide")) == 2


async def test_the_speakers_name_is_part_of_what_is_recalled(store: Any) -> None:
    said = Event.of_message(ANA, "s1", ChatMessage.user("nothing special", name="Wilhelmina"))
    await store.append([said, _event("something else")])
    [found] = await store.recall(ANA, "what did Wilhelmina say?")
    assert found.event.id == said.id


async def test_recall_is_by_agent_across_sessions_or_in_one_session(store: Any) -> None:
    await store.append([_event("tide here"), _event("tide there", session="s2")])
    assert sorted(_notes(await store.recall(ANA, "tide"))) == ["tide here", "tide there"]
    assert _notes(await store.recall(ANA, "tide", session_id="s2")) == ["tide there"]


async def test_recall_filters_by_type_and_by_time(store: Any) -> None:
    hour = timedelta(hours=1)
    await store.append(
        [
            _event("tide 1", type="decision", occurred_at=NOON),
            _event("tide 2", type="decision", occurred_at=NOON + hour),
            _event("tide 3", occurred_at=NOON + hour),
        ]
    )
    assert _notes(await store.recall(ANA, "tide", types=["observation"])) == ["tide 3"]
    found = await store.recall(ANA, "tide", types=["decision"], since=NOON + hour)
    assert _notes(found) == ["tide 2"]
    assert _notes(await store.recall(ANA, "tide", until=NOON + hour)) == ["tide 1"]


async def test_recall_returns_k_results_whenever_k_match(store: Any) -> None:
    await store.append([_event(f"tide {at}", session=f"s{at % 50}") for at in range(500)])
    assert len(await store.recall(ANA, "tide", limit=7)) == 7
    assert len(await store.recall(ANA, "tide", limit=7, session_id="s49")) == 7
    vectors = [[1.0, float(at)] for at in range(100)]
    rows = [_event(f"n{at}", session=f"v{at % 20}") for at in range(100)]
    await store.append(rows, embeddings=vectors)
    assert len(await store.recall(ANA, [1.0, 0.0], limit=5, session_id="v19")) == 5


async def test_recall_scores_are_between_zero_and_one_best_first_and_name_their_arm(
    store: Any,
) -> None:
    await store.append([_event("tide"), _event("tide tide moon"), _event("moon and more words")])
    found = await store.recall(ANA, "tide moon")
    scores = [one.score for one in found]
    assert len(found) == 3
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert all(one.found_by == ("lexical",) for one in found)
    assert all(one.scores["lexical"] > 0 for one in found)


async def test_recall_of_a_blank_query_returns_the_most_recent(store: Any) -> None:
    hour = timedelta(hours=1)
    await store.append([_event(f"{at}", occurred_at=NOON + at * hour) for at in range(4)])
    found = await store.recall(ANA, "  ", limit=2)
    assert _notes(found) == ["3", "2"]
    assert found[0].found_by == ("recent",)


async def test_recall_by_vector_finds_the_nearest(store: Any) -> None:
    vectors = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    await store.append([_event(f"{at}") for at in range(4)], embeddings=vectors)
    found = await store.recall(ANA, [1.0, 0.0, 0.0], limit=4)
    assert _notes(found) == ["0", "1", "2", "3"]
    assert found[0].score == pytest.approx(1.0)
    assert found[-1].score == pytest.approx(0.0)
    assert found[0].found_by == ("semantic",)


async def test_a_vector_of_another_dimension_is_an_error_that_names_both(store: Any) -> None:
    await store.append([_event("x")], embeddings=[[1.0, 0.0]])
    for call in (
        store.append([_event("y")], embeddings=[[1.0, 0.0, 0.0]]),
        store.recall(ANA, [1.0, 0.0, 0.0]),
    ):
        with pytest.raises(InvalidInputError, match=r"3.*2"):
            await call
    assert _notes(await store.recall(ANA, "")) == ["x"]


async def test_a_zero_infinite_or_nan_vector_is_refused(store: Any) -> None:
    for bad in ([0.0, 0.0], [float("inf"), 1.0], [float("nan"), 1.0]):
        with pytest.raises(InvalidInputError) as caught:
            await store.append([_event("x")], embeddings=[bad])
        assert caught.value.field == "embeddings[0]"
        with pytest.raises(InvalidInputError) as caught:
            await store.recall(ANA, bad)
        assert caught.value.field == "query"
    assert await store.recent(ANA) == []


async def test_embeddings_must_be_as_many_as_the_events(store: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"2 events, 1 embeddings") as caught:
        await store.append([_event("x"), _event("y")], embeddings=[[1.0, 0.0]])
    assert caught.value.field == "embeddings"
    assert await store.recent(ANA) == []


async def test_recall_by_vector_without_any_vectors_is_empty(store: Any) -> None:
    await store.append([_event("tide")])
    assert await store.recall(ANA, [1.0, 0.0]) == []


async def test_recall_with_an_embedder_finds_by_meaning_what_shares_no_word(
    harness: Harness,
) -> None:
    store = harness.store(CONTRACT, embedder=ByTopic())
    await store.append([_event("a ship came in"), _event("the field is dry"), _event("tide 9")])
    found = await store.recall(ANA, "ocean", limit=2)
    assert sorted(_notes(found)) == ["a ship came in", "tide 9"]
    assert all(one.found_by == ("semantic",) for one in found)
    both = await store.recall(ANA, "tide", limit=1)
    assert (_notes(both), both[0].found_by) == (["tide 9"], ("lexical", "semantic"))


async def test_an_embedder_that_is_down_never_loses_a_write_and_recall_says_so(
    harness: Harness,
) -> None:
    embedder = ByTopic()
    store = harness.store(CONTRACT, embedder=embedder)
    embedder.down = True
    await store.append([_event("a ship came in"), _event("tide 9")])
    [found] = await store.recall(ANA, "tide")
    assert (_notes([found]), found.found_by) == (["tide 9"], ("lexical",))
    assert "by-topic" in found.degraded
    embedder.down = False
    later = await store.recall(ANA, "ocean", limit=2)
    assert sorted(_notes(later)) == ["a ship came in", "tide 9"]
    assert later[0].degraded == ""


async def test_cleared_events_are_never_recalled(store: Any) -> None:
    await store.append([_event("tide before")], embeddings=[[1.0, 0.0]])
    assert len(await store.recall(ANA, "tide")) == 1
    await store.append([_event("tide unread")])
    await store.clear("s1")
    assert await store.recall(ANA, "tide") == []
    assert await store.recall(ANA, [1.0, 0.0]) == []
    await store.append([_event("tide after")])
    assert _notes(await store.recall(ANA, "tide")) == ["tide after"]
