"""What every ``VectorStore`` promises about search and filters."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from holdfast.contracts.vectors import VectorStore
from holdfast.testing.filter_cases import REFUSED, TRUTH
from holdfast.values.content import TextBlock
from holdfast.values.documents import Document, SearchResult
from holdfast.values.errors import InvalidInputError

CONTRACT = "vectors"
pytestmark = pytest.mark.asyncio(loop_scope="session")

EAST = [1.0, 0.0]


def _at(id: str, degrees: float, length: float = 1.0, **metadata: Any) -> Document:
    angle = math.radians(degrees)
    vector = [length * math.cos(angle), length * math.sin(angle)]
    return Document.from_text(id, id=id, embedding=vector, metadata=metadata)


def _ids(results: list[SearchResult]) -> list[str]:
    return [result.id for result in results]


async def test_search_returns_the_closest_first(store: VectorStore) -> None:
    await store.add([_at("far", 90), _at("near", 10), _at("behind", 180), _at("nearest", -1)])
    assert _ids(await store.search(EAST)) == ["nearest", "near", "far", "behind"]
    assert _ids(await store.search(EAST, limit=2)) == ["nearest", "near"]


async def test_the_score_is_the_cosine_similarity(store: VectorStore) -> None:
    dice = random.Random(7)  # noqa: S311 - not a secret
    vectors = {f"d{at}": [dice.gauss(0, 1) for _ in range(24)] for at in range(60)}
    await store.add(
        [Document.from_text(name, id=name, embedding=it) for name, it in vectors.items()]
    )
    query = [dice.gauss(0, 100) for _ in range(24)]

    def cosine(id: str) -> float:
        dot = math.fsum(a * b for a, b in zip(vectors[id], query, strict=True))
        return dot / math.hypot(*vectors[id]) / math.hypot(*query)

    results = await store.search(query, limit=20)
    assert _ids(results) == sorted(vectors, key=lambda name: -cosine(name))[:20]
    for result in results:
        assert result.score == pytest.approx(cosine(result.id), abs=1e-5)
        assert -1 <= result.score <= 1


async def test_ties_are_ordered_by_id_by_code_points(store: VectorStore) -> None:
    names = ["b", "é", "Z", "a", "\U0001f980", "\uffee"]
    await store.add([_at(name, 30) for name in names])
    await store.add([_at("nearer", 29)])
    expected = ["nearer", "Z", "a", "b", "é", "\uffee", "\U0001f980"]
    assert _ids(await store.search(EAST, limit=9)) == expected
    assert _ids(await store.search(EAST, limit=3)) == expected[:3]


async def test_a_result_has_the_content_and_the_metadata_of_its_document(
    store: VectorStore,
) -> None:
    await store.add([_at("a", 0, kind="note")])
    [found] = await store.search([2.0, 0.0])
    assert found == SearchResult("a", [TextBlock("a")], found.score, {"kind": "note"})
    assert found.score == pytest.approx(1)


async def test_a_search_limit_of_zero_is_an_empty_result(store: VectorStore) -> None:
    await store.add([_at("a", 0)])
    assert await store.search(EAST, limit=0) == []


async def test_a_search_limit_below_zero_is_refused(store: VectorStore) -> None:
    for limit in (-1, 1.5, None, True):
        with pytest.raises(InvalidInputError) as refused:
            await store.search(EAST, limit=limit)  # type: ignore[arg-type]
        assert refused.value.field == "limit"


async def test_a_search_returns_all_documents_when_there_are_fewer_than_the_limit(
    store: VectorStore,
) -> None:
    await store.add([_at("a", 0), _at("b", 90)])
    assert _ids(await store.search(EAST)) == ["a", "b"]
    assert _ids(await store.search(EAST, limit=10**9)) == ["a", "b"]


async def test_a_filtered_search_returns_as_many_as_asked_whenever_as_many_match(
    store: VectorStore,
) -> None:
    crowd = [_at(f"other{at:03}", at / 100, kind="other") for at in range(300)]
    wanted = [_at(f"wanted{at}", 90 + at, kind="wanted") for at in range(8)]
    await store.add(crowd + wanted)
    found = await store.search(EAST, limit=5, filter={"kind": "wanted"})
    assert _ids(found) == [f"wanted{at}" for at in range(5)]


async def _check(store: VectorStore, rule: str) -> None:
    """Ask the engine every row of one rule of the truth table, all documents being there."""
    cases = TRUTH[rule]
    await store.add([_at(f"d{at}", 0, **case.metadata) for at, case in enumerate(cases)])
    wrong = []
    for at, case in enumerate(cases):
        found = _ids(await store.search(EAST, limit=len(cases), filter=case.filter))
        if (f"d{at}" in found) is not case.matches:
            wrong.append(case)
    assert not wrong


async def test_a_filter_of_a_key_and_a_value_asks_for_equality(store: VectorStore) -> None:
    await _check(store, "a filter of a key and a value asks for equality")


async def test_a_list_in_a_filter_means_any_of(store: VectorStore) -> None:
    await _check(store, "a list in a filter means any of")


async def test_several_conditions_in_a_filter_must_all_hold(store: VectorStore) -> None:
    await _check(store, "several conditions in a filter must all hold")


async def test_a_filter_distinguishes_a_missing_key_from_a_null(store: VectorStore) -> None:
    await _check(store, "a filter distinguishes a missing key from a null")


async def test_a_filter_distinguishes_true_from_1_and_not_1_from_a_float(
    store: VectorStore,
) -> None:
    await _check(store, "a filter distinguishes true from 1 and not 1 from a float")


async def test_a_filter_orders_numbers_with_numbers_and_text_with_text_only(
    store: VectorStore,
) -> None:
    await _check(store, "a filter orders numbers with numbers and text with text only")


async def test_a_filter_orders_text_by_code_points(store: VectorStore) -> None:
    await _check(store, "a filter orders text by code points")


async def test_a_filter_on_a_list_asks_whether_an_element_fits(store: VectorStore) -> None:
    await _check(store, "a filter on a list asks whether an element fits")


async def test_a_dotted_path_in_a_filter_reaches_a_nested_key(store: VectorStore) -> None:
    await _check(store, "a dotted path in a filter reaches a nested key")


async def test_a_dot_or_a_dollar_in_a_filters_key_is_escaped_by_a_backslash(
    store: VectorStore,
) -> None:
    await _check(store, "a dot or a dollar in a filter's key is escaped by a backslash")


async def test_a_negation_in_a_filter_holds_exactly_where_its_opposite_does_not(
    store: VectorStore,
) -> None:
    await _check(store, "a negation in a filter holds exactly where its opposite does not")


async def test_an_empty_list_in_a_filter_lets_nothing_through_and_an_empty_and_everything(
    store: VectorStore,
) -> None:
    await _check(
        store, "an empty list in a filter lets nothing through, and an empty and everything"
    )


async def test_equals_in_a_filter_asks_for_the_whole_value(store: VectorStore) -> None:
    await _check(store, "equals in a filter asks for the whole value")


async def test_a_filter_that_cannot_be_read_is_refused_by_its_path(store: VectorStore) -> None:
    for refusal in REFUSED:
        for collection in ("default", "nobody"):
            with pytest.raises(InvalidInputError) as refused:
                await store.search(EAST, collection=collection, filter=refusal.filter)
            assert refused.value.field == refusal.field
