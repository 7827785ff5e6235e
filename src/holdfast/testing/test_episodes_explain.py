"""The promises of ``EpisodicMemory``: explanations of hits, and rerankers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.testing.harness import Harness
from holdfast.values.content import ChatMessage
from holdfast.values.errors import EngineError, InvalidInputError, TimedOutError
from holdfast.values.events import Event, Recalled
from holdfast.values.explanations import ArmScore
from holdfast.values.identity import AgentId

CONTRACT = "episodes"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def _said(name: str, text: str, *, session: str = "s1") -> Event:
    return Event.of_message(ANA, session, ChatMessage.user(text, name=name, created_at=NOON))


def _texts(found: Sequence[Recalled]) -> list[str]:
    return [one.event.to_message().text for one in found]


class ByLength:
    """A reranker that prefers short texts, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[Recalled]]] = []

    async def rerank(self, question: str, hits: Sequence[Recalled]) -> list[float]:
        """The shorter, the better."""
        self.asked.append((question, list(hits)))
        return [-float(len(one.event.to_message().text)) for one in hits]


class Bad:
    """A reranker that returns what it was made with, or raises it."""

    limit_seconds = 0.02

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def rerank(self, question: str, hits: Sequence[Recalled]) -> Any:
        """The answer."""
        if isinstance(self._answer, Exception):
            raise self._answer
        if self._answer == "hang":
            await asyncio.Event().wait()
        return self._answer if question and hits else []


async def test_recall_explains_each_hit_if_asked_and_not_otherwise(store: Any) -> None:
    await store.append([_said("Ana", "Where is the harbour? Is it high tide?")])
    await store.append([_said("Old Ben", "Low tide."), _said("Cyd", "moon", session="s2")])
    question = "When did Old Ben see the low tide in the harbour?"
    plain = await store.recall(ANA, question)
    assert all(one.explanation is None for one in plain)
    explained = await store.recall(ANA, question, explain=True)
    assert [(one.event, one.score, one.scores) for one in explained] == [
        (one.event, one.score, one.scores) for one in plain
    ]
    answer, asked = (one.explanation for one in explained)
    assert answer.words == ("old", "ben", "low", "tide")
    assert answer.borrowed == ("harbour",)
    assert answer.arms == {"lexical": ArmScore(explained[0].scores["lexical"], 1)}
    assert set(answer.added) == {"speaker", "session", "near"}
    assert answer.added == {rule: explained[0].scores[rule] for rule in answer.added}
    assert (asked.words, asked.borrowed) == (("tide", "harbour"), ())
    assert asked.arms["lexical"].rank == 2
    assert asked.added["asks"] == pytest.approx(-0.2 * asked.arms["lexical"].score)
    assert set(answer.milliseconds) == {"lexical"}
    assert all(took >= 0 for took in answer.milliseconds.values())
    assert asked.milliseconds == answer.milliseconds


async def test_an_explanation_has_the_rank_and_the_time_of_every_arm(harness: Harness) -> None:
    store = harness.store(CONTRACT, embedder=HashEmbedder())
    await store.append([_said("Ana", "the tide and the moon"), _said("Ben", "tide")])
    await store.append([_said("Cyd", "no such word")])
    found = await store.recall(ANA, "tide", explain=True)
    assert len(found) == 3
    why = [one.explanation for one in found]
    assert sorted(one.arms["semantic"].rank for one in why) == [1, 2, 3]
    assert sorted(one.arms["lexical"].rank for one in why if "lexical" in one.arms) == [1, 2]
    assert all(set(one.milliseconds) == {"lexical", "semantic"} for one in why)
    for one in found:
        assert {arm: part.score for arm, part in one.explanation.arms.items()} == {
            arm: one.scores[arm] for arm in one.explanation.arms
        }


async def test_a_search_with_one_arm_is_explained_by_it(store: Any) -> None:
    await store.append([_said("Ana", "x"), _said("Ana", "y")], embeddings=[[1.0, 0.0], [1.0, 1.0]])
    near = await store.recall(ANA, [1.0, 0.0], explain=True)
    assert [one.explanation.arms for one in near] == [
        {"semantic": ArmScore(one.scores["semantic"], rank)} for rank, one in enumerate(near, 1)
    ]
    recent = await store.recall(ANA, " ", explain=True)
    assert [one.explanation.arms["recent"].rank for one in recent] == [1, 2]
    assert set(recent[0].explanation.milliseconds) == {"recent"}


async def test_a_reranker_orders_the_first_20_hits(store: Any) -> None:
    await store.append([_said("Ana", "tide " + "x " * (30 - at)) for at in range(30)])
    plain = await store.recall(ANA, "tide", limit=25)
    reranker = ByLength()
    found = await store.recall(ANA, "tide", limit=25, reranker=reranker)
    first = sorted(_texts(plain[:20]), key=len)
    assert _texts(found) == [*first, *_texts(plain[20:])]
    assert [one.score for one in found] == [one.score for one in plain]
    assert found[0].scores["reranker"] == -len(first[0])
    assert "reranker" not in found[20].scores
    assert [(question, len(hits)) for question, hits in reranker.asked] == [("tide", 20)]
    # It reads 20 hits, also if fewer are asked for.
    assert _texts(await store.recall(ANA, "tide", limit=2, reranker=reranker)) == first[:2]
    assert await store.recall(ANA, "volcano", reranker=reranker) == []
    assert len(await store.recall(ANA, "", limit=3, reranker=reranker)) == 3
    assert len(reranker.asked) == 2


async def test_a_reranker_that_fails_is_an_engineerror_that_names_it(store: Any) -> None:
    await store.append([_said("Ana", "tide"), _said("Ben", "tide")])
    for answer in (RuntimeError("no model"), [1.0], [1.0, 2.0, 3.0], [1.0, float("nan")], 7, "ab"):
        with pytest.raises(EngineError, match="reranker Bad"):
            await store.recall(ANA, "tide", reranker=Bad(answer))
    with pytest.raises(TimedOutError, match="reranker Bad"):
        await store.recall(ANA, "tide", reranker=Bad("hang"))


async def test_a_reranker_that_is_none_or_for_a_vector_is_refused(store: Any) -> None:
    await store.append([_said("Ana", "tide")], embeddings=[[1.0, 0.0]])
    for query, reranker in (("tide", 7), ([1.0, 0.0], ByLength())):
        with pytest.raises(InvalidInputError) as caught:
            await store.recall(ANA, query, reranker=reranker)
        assert caught.value.field == "reranker"


async def test_a_reranker_sees_the_events_of_the_owner_who_asks_under_their_own_ids(
    store: Any,
) -> None:
    ana, bob = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "bob"))
    await ana.append([_said("Ana", "tide of ana")])
    await bob.append([_said("Bob", "tide of bob")])
    reranker = ByLength()
    await ana.recall(ANA, "tide", reranker=reranker)
    [(_, hits)] = reranker.asked
    assert _texts(hits) == ["tide of ana"]
    assert (hits[0].event.session_id, hits[0].event.agent_id) == ("s1", ANA)
