"""What every ``ItemStore`` promises about searches."""

from __future__ import annotations

import math
from typing import Any

import pytest

from holdfast.contracts.items import ItemStore
from holdfast.testing.filter_cases import REFUSED, TRUTH
from holdfast.testing.test_items import ANA, EAST, NORTH, WEST, found, keys, put
from holdfast.values.errors import InvalidInputError
from holdfast.values.items import ItemKey, ItemPut

CONTRACT = "items"
pytestmark = pytest.mark.asyncio(loop_scope="session")


def at(degrees: float, length: float = 1.0) -> list[float]:
    """A vector that points so far from the east."""
    return [length * math.cos(math.radians(degrees)), length * math.sin(math.radians(degrees))]


async def test_search_finds_the_items_of_a_namespace_and_of_those_below_it(
    store: ItemStore,
) -> None:
    paths = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "c"), ("b",), ("b", "a")]
    await store.put_many([ItemPut(path, "-".join(path), {}) for path in paths])
    asked: list[tuple[tuple[str, ...], set[str]]] = [
        ((), {"-".join(path) for path in paths}),
        (("a",), {"a", "a-b", "a-b-c", "a-c"}),
        (("a", "b"), {"a-b", "a-b-c"}),
        (("a", "b", "c"), {"a-b-c"}),
        (("a", "b", "c", "d"), set()),
        (("c",), set()),
    ]
    for prefix, expected in asked:
        assert set(keys(await store.search(prefix))) == expected
        assert set(keys(await store.search(prefix, vector=EAST))) == expected


async def test_a_prefix_compares_whole_labels(store: ItemStore) -> None:
    labels = [
        "a",
        "ab",
        "A",
        "a_%",
        "a.b",
        "é",
        "e\u0301",
        "\U0010ffff",
        "\uffff",
        "*",
        "a/b",
        "{}",
    ]
    await store.put_many([ItemPut((label, "x"), label, {}) for label in labels])
    for label in labels:
        assert keys(await store.search((label,))) == [label]
        assert await store.list_namespaces(prefix=(label,)) == [(label, "x")]
        assert await store.list_namespaces(prefix=(label, "x"), suffix=(label, "x")) == [
            (label, "x")
        ]


async def test_without_a_vector_search_returns_the_item_that_was_put_last_first(
    store: ItemStore,
) -> None:
    for key in ("b", "c", "a", "b"):
        await store.put_many([put(key, vectors=[EAST])])
    await store.get_many([ItemKey(ANA, "c")], refresh=True)
    hits = await store.search(ANA)
    assert keys(hits) == ["b", "a", "c"]
    assert [hit.score for hit in hits] == [None, None, None]


async def test_with_a_vector_search_returns_the_closest_first(store: ItemStore) -> None:
    angles = {"a": 90, "b": 10, "c": 180, "d": 45, "e": 0}
    await store.put_many([put(key, vectors=[at(angle, 3)]) for key, angle in angles.items()])
    hits = await store.search((), vector=[2.0, 0.0])
    assert keys(hits) == ["e", "b", "d", "a", "c"]
    for hit in hits:
        assert hit.score == pytest.approx(math.cos(math.radians(angles[hit.item.key])), abs=1e-6)


async def test_the_score_of_an_item_is_that_of_its_best_vector(store: ItemStore) -> None:
    await store.put_many(
        [
            put("a", vectors=[at(170), at(20), at(90)]),
            put("b", vectors=[at(30)]),
            put("c", vectors=[at(180), at(10)]),
        ]
    )
    hits = await store.search((), vector=EAST)
    assert keys(hits) == ["c", "a", "b"]
    expected = [math.cos(math.radians(angle)) for angle in (10, 20, 30)]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-6)


async def test_of_items_with_the_same_score_the_one_that_was_put_last_comes_first(
    store: ItemStore,
) -> None:
    for number in range(40):
        # The same direction; in 32 bits the cosine depends on the length.
        vector = [number + 1.0, 3.0 * (number + 1), 7.0 * (number + 1)]
        await store.put_many([put(f"k{number:02}", vectors=[vector])])
    expected = [f"k{number:02}" for number in range(39, -1, -1)]
    asked = [0.2, 0.5, 0.9]
    assert keys(await store.search((), vector=asked, limit=100)) == expected
    for offset in (0, 1, 7, 38):
        page = await store.search((), vector=asked, limit=5, offset=offset)
        assert keys(page) == expected[offset : offset + 5]


async def test_items_without_a_vector_come_after_those_with_one(store: ItemStore) -> None:
    await store.put_many([put("a")])
    await store.put_many([put("b", vectors=[WEST])])
    await store.put_many([put("c")])
    await store.put_many([put("d", vectors=[EAST])])
    hits = await store.search((), vector=EAST)
    assert [(hit.item.key, hit.score) for hit in hits] == [
        *(("d", 1.0), ("b", -1.0), ("c", None), ("a", None))
    ]
    for offset in range(5):
        page = await store.search((), vector=EAST, limit=2, offset=offset)
        assert page == hits[offset : offset + 2]


async def test_a_vector_of_another_dimension_counts_as_none(store: ItemStore) -> None:
    await store.put_many(
        [put("a", vectors=[EAST, [0.0, 1.0, 0.0]]), put("b", vectors=[[1.0, 0.0, 0.0]])]
    )
    two = await store.search((), vector=EAST)
    assert [(hit.item.key, hit.score) for hit in two] == [("a", 1.0), ("b", None)]
    three = await store.search((), vector=[1.0, 0.0, 0.0])
    assert [(hit.item.key, hit.score) for hit in three] == [("b", 1.0), ("a", 0.0)]
    four = await store.search((), vector=[1.0, 0.0, 0.0, 0.0])
    assert [hit.score for hit in four] == [None, None]


async def test_a_put_replaces_the_vectors_of_the_item(store: ItemStore) -> None:
    await store.put_many([put("a", vectors=[EAST, NORTH])])
    await store.put_many([put("a", vectors=[WEST])])
    assert [hit.score for hit in await store.search((), vector=EAST)] == [-1.0]
    await store.put_many([put("a")])
    assert [hit.score for hit in await store.search((), vector=EAST)] == [None]


async def test_nan_infinite_and_zero_norm_vectors_are_refused(store: ItemStore) -> None:
    bad: Any
    for bad in ([math.nan, 1.0], [math.inf], [0.0, 0.0], [1e39], [], ["1"], "1", [True], None):
        with pytest.raises(InvalidInputError) as caught:
            await store.put_many([put("a"), put("b", vectors=[EAST, bad])])
        assert caught.value.field.startswith("puts[1].vectors[1]")
        if bad is not None:
            with pytest.raises(InvalidInputError, match="vector"):
                await store.search((), vector=bad)
    with pytest.raises(InvalidInputError, match=r"puts\[0\]\.vectors"):
        await store.put_many([put("a", vectors="ab")])
    assert await found(store) == []


async def test_a_filter_of_a_search_looks_at_the_values(store: ItemStore) -> None:
    cases = [case for section in TRUTH.values() for case in section]
    texts = {repr(case.metadata): case.metadata for case in cases}
    places = {text: f"k{number}" for number, text in enumerate(texts)}
    await store.put_many([put(places[text], value) for text, value in texts.items()])
    await store.put_many([ItemPut(("other",), "x", value) for value in list(texts.values())[:1]])
    wrong = []
    for case in cases:
        hits = await store.search(ANA, filter=case.filter, limit=1000)
        near = await store.search(ANA, filter=case.filter, vector=EAST, limit=1000)
        assert keys(hits) == keys(near)
        if (places[repr(case.metadata)] in keys(hits)) is not case.matches:
            wrong.append(case)
    assert not wrong


async def test_a_filter_of_a_search_that_cannot_be_read_is_refused_by_its_path(
    store: ItemStore,
) -> None:
    for refusal in REFUSED:
        with pytest.raises(InvalidInputError) as caught:
            await store.search((), filter=refusal.filter)
        assert caught.value.field == refusal.field
    with pytest.raises(InvalidInputError, match="at most 256"):
        await store.search((), filter={"k": {"$equals": list(range(257))}})


async def test_limit_and_offset_select_a_page_of_a_search(store: ItemStore) -> None:
    for key in "abcdefg":
        await store.put_many([put(key, {"odd": key in "aceg"}, vectors=[at(ord(key))])])
    how: Any
    for how in ({}, {"vector": EAST}, {"filter": {"odd": True}}):
        whole = await store.search((), limit=100, **how)
        for limit, offset in ((1, 0), (2, 1), (3, 3), (5, 4), (1, 100), (1 << 62, 2)):
            page = await store.search((), limit=limit, offset=offset, **how)
            assert page == whole[offset : offset + limit]
    bad: Any
    for bad in (-1, True, 1.5, None, 1 << 63):
        with pytest.raises(InvalidInputError, match="limit"):
            await store.search((), limit=bad)
        with pytest.raises(InvalidInputError, match="offset"):
            await store.search((), offset=bad)


async def test_a_limit_of_zero_is_an_empty_result(store: ItemStore) -> None:
    await store.put_many([put("a", vectors=[EAST])])
    assert await store.search((), limit=0) == []
    assert await store.search((), vector=EAST, limit=0) == []
    assert await store.list_namespaces(limit=0) == []
