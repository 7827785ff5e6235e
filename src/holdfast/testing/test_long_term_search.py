"""What every ``LongTermMemory`` promises about search by words."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.long_term_memory import LongTermMemory
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import AgentId

CONTRACT = "long_term"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN = AgentId("helper", "ann")


async def _save(store: LongTermMemory, *contents: str, **options: Any) -> None:
    for content in contents:
        await store.save(ANN, content, **options)


async def _contents(store: LongTermMemory, query: str, **options: Any) -> list[str]:
    return [memory.content for memory in await store.search(ANN, query, **options)]


async def test_a_search_finds_memories_that_hold_any_word_of_the_query(
    store: LongTermMemory,
) -> None:
    await _save(store, "low tide at noon", "a green moon", "nothing of the kind")
    found = await _contents(store, "will the tide or the moon be purple")
    assert sorted(found) == ["a green moon", "low tide at noon"]
    assert await _contents(store, "purple") == []


async def test_a_memory_with_more_of_the_querys_words_comes_first(store: LongTermMemory) -> None:
    await _save(store, "tide and rock", "rock low tide", "rock and salt")
    found = await _contents(store, "low tide")
    assert found == ["rock low tide", "tide and rock"]


async def test_a_rare_word_of_the_query_weighs_more_than_a_common_one(
    store: LongTermMemory,
) -> None:
    await _save(store, "comet seen here", "tide seen here", "tide high now", "tide low now")
    assert (await _contents(store, "comet tide"))[0] == "comet seen here"


async def test_words_match_by_their_stem_whatever_their_case(store: LongTermMemory) -> None:
    await _save(store, "The TIDES were Rising")
    assert await _contents(store, "a tide rises") == ["The TIDES were Rising"]
    assert await _contents(store, "the were") == []


async def test_the_language_decides_how_words_are_stemmed(harness: Harness) -> None:
    english, german = harness.store(CONTRACT), harness.store(CONTRACT, language="german")
    await _save(english, "die Häuser am Meer")
    assert await _contents(german, "Haus") == ["die Häuser am Meer"]
    assert await _contents(english, "Haus") == []
    with pytest.raises(InvalidInputError, match="english"):
        await harness.store(CONTRACT, language="klingon").search(ANN, "Haus")


async def test_the_score_lies_between_0_and_1_the_best_first(store: LongTermMemory) -> None:
    await _save(store, "tide", "low tide", "low tide at noon", "a very long text about the tide")
    scores = [memory.score for memory in await store.search(ANN, "low tide noon")]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


async def test_memories_of_the_same_score_are_ordered_from_new_to_old(
    store: LongTermMemory,
) -> None:
    for source in ("s1", "s2", "s3"):
        await store.save(ANN, "low tide", source=source)
    found = await store.search(ANN, "tide")
    assert [memory.source for memory in found] == ["s3", "s2", "s1"]


async def test_an_empty_query_returns_the_most_recent_first(
    harness: Harness, store: LongTermMemory
) -> None:
    await _save(store, "first", "second")
    await harness.elapse(60)
    await _save(store, "third")
    assert await _contents(store, "") == ["third", "second", "first"]
    assert await _contents(store, " \n", limit=2) == ["third", "second"]


async def test_a_search_limit_of_zero_is_an_empty_result(store: LongTermMemory) -> None:
    await _save(store, "tide")
    assert await _contents(store, "tide", limit=0) == await _contents(store, "", limit=0) == []


async def test_a_search_limit_below_zero_is_refused(store: LongTermMemory) -> None:
    bad: Any
    for bad in (-1, 1.5, None, True):
        with pytest.raises(InvalidInputError) as refused:
            await store.search(ANN, "tide", limit=bad)
        assert refused.value.field == "limit"


async def test_a_search_never_returns_more_than_its_limit(store: LongTermMemory) -> None:
    await _save(store, *(f"tide {at}" for at in range(15)))
    assert len(await _contents(store, "tide")) == len(await _contents(store, "")) == 10
    assert len(await _contents(store, "tide", limit=3)) == 3
    assert len(await _contents(store, "tide", limit=99)) == 15


async def test_topic_narrows_a_search(store: LongTermMemory) -> None:
    await _save(store, "tide of the sea", topic="sea")
    await _save(store, "tide of the moon", topic="moon")
    await _save(store, "tide of nothing")
    assert await _contents(store, "tide", topic="sea") == ["tide of the sea"]
    assert await _contents(store, "", topic="moon") == ["tide of the moon"]
    assert await _contents(store, "tide", topic="") == ["tide of nothing"]
    assert await _contents(store, "tide", topic="SEA") == []
    assert len(await _contents(store, "tide")) == 3


async def test_min_confidence_narrows_a_search(store: LongTermMemory) -> None:
    for confidence in (0.0, 0.5, 1.0):
        await _save(store, f"tide {confidence}", confidence=confidence)
    assert await _contents(store, "tide", min_confidence=0.5) == ["tide 1.0", "tide 0.5"]
    assert await _contents(store, "", min_confidence=0.51) == ["tide 1.0"]
    assert len(await _contents(store, "tide", min_confidence=0)) == 3
