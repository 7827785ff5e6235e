"""Filters of the framework on our store: the same, but for what a table names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from holdfast import State
from holdfast.adapters.langgraph import HoldfastStore
from holdfast.adapters.langgraph.store_filters import to_filter
from holdfast.errors import InvalidInputError
from holdfast.values.filters import matches, parse

SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"k": "a"}, {"k": "a"}),
    ({"k": "a"}, {"k": "b"}),
    ({"k": None}, {"k": None}),
    ({}, {"k": None}),
    ({}, {"k": {"$ne": 1}}),
    ({}, {"k": {"$ne": None}}),
    ({"k": 1}, {"k": 1.0}),
    ({"k": ["a", "b"]}, {"k": ["a", "b"]}),
    ({"k": ["a", "b"]}, {"k": ["b", "a"]}),
    ({"k": ["a", "b"]}, {"k": "a"}),
    ({"k": ["a"]}, {"k": {"$eq": ["a"]}}),
    ({"k": {"x": 1, "y": 2}}, {"k": {"x": 1}}),
    ({"k": {"x": 1, "y": 2}}, {"k": {"$eq": {"x": 1}}}),
    ({"k": {"x": {"y": [1]}}}, {"k": {"x": {"y": [1]}}}),
    ({"k": {"x": 1}}, {"k": {"x": 1, "z": None}}),
    ({"k": {"x": 5}}, {"k": {"x": {"$gte": 5, "$lt": 6}}}),
    ({"k": 7}, {"k": {"$gt": "5"}}),
    ({"k": 7}, {"k": {"$gt": 7.5}}),
    ({"a.b": 1}, {"a.b": 1}),
    ({"a": {"b": 1}}, {"a.b": 1}),
    ({"a": 1, "b": 2}, {"a": 1, "b": 3}),
    ({"k": True}, {"k": True}),
]
ERROR = "an error"
APART: list[tuple[dict[str, Any], dict[str, Any], Any, Any, str]] = [
    ({"k": True}, {"k": 1}, True, False, "true is not 1"),
    ({"k": "7"}, {"k": {"$gt": 5}}, True, False, "a text is not a number"),
    ({"k": "b"}, {"k": {"$gt": "a"}}, ERROR, True, "texts are ordered by code points"),
    ({}, {"k": {"$gt": 5}}, ERROR, False, "nothing is greater than a missing key"),
    ({"k": None}, {"k": {"$lt": 5}}, ERROR, False, "null has no order"),
    ({"k": [9]}, {"k": {"$gt": 5}}, ERROR, True, "an element of a list may be greater"),
    ({"k": 1}, {"k": {"$gt": True}}, False, ERROR, "true has no order"),
    ({"k": [{"x": 1, "y": 2}]}, {"k": [{"x": 1}]}, True, False, "in a list, objects are whole"),
    ({"k": {"x": 1}}, {"k": {}}, True, ERROR, "an empty dict asks for nothing"),
    ({}, {"k": {"x": None}}, False, True, "the keys of a missing object are missing too"),
    ({"k": 1}, {"k": {"$in": [1]}}, ERROR, ERROR, "no store has other operators"),
    ({"k": 1}, {"k": {"$gt": 0, "x": 1}}, ERROR, ERROR, "a key among operators is none"),
]


def _theirs(value: dict[str, Any], asked: dict[str, Any]) -> Any:
    store = InMemoryStore()
    store.put(("n",), "k", value)
    try:
        return len(store.search(("n",), filter=asked)) == 1
    except (TypeError, ValueError):
        return ERROR


async def _ours(state: State, value: dict[str, Any], asked: dict[str, Any]) -> Any:
    store = HoldfastStore(state)
    await store.aput(("n",), "k", value)
    try:
        return len(await store.asearch(("n",), filter=asked)) == 1
    except InvalidInputError:
        return ERROR


@pytest.mark.asyncio(loop_scope="session")
async def test_a_filter_means_what_it_means_in_the_frameworks_own_store(state: State) -> None:
    for value, asked in SAME:
        assert await _ours(state, value, asked) is _theirs(value, asked), (value, asked)


@pytest.mark.asyncio(loop_scope="session")
async def test_where_a_filter_differs_from_the_frameworks_own_store(state: State) -> None:
    for value, asked, theirs, ours, why in APART:
        assert _theirs(value, asked) == theirs, why
        assert await _ours(state, value, asked) == ours, why


SCALARS = st.sampled_from(["", "a", "b", None, 2, 3, 2.5, -1])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner),
    max_leaves=4,
)
INSIDE = st.recursive(
    SCALARS.filter(lambda value: value is not None) | st.lists(SCALARS, max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("xy"), inner, min_size=1, max_size=2),
    max_leaves=4,
)
"""What an object may be asked for; ``None`` in it is in ``APART``."""
WANTED = (
    st.none()
    | INSIDE
    | st.builds(lambda name, value: {name: value}, st.sampled_from(["$eq", "$ne"]), VALUES)
)


@given(
    st.dictionaries(st.sampled_from("kl"), VALUES), st.dictionaries(st.sampled_from("kl"), WANTED)
)
def test_random_filters_without_an_order_mean_the_same(
    value: dict[str, Any], asked: dict[str, Any]
) -> None:
    assert matches(parse(to_filter(asked)), value) is _theirs(value, asked)


def test_a_filter_that_cannot_be_read_is_refused_by_its_path() -> None:
    deep: Any = 1
    for _ in range(70):
        deep = {"k": deep}
    bad: Any
    for bad, field in (
        ({"k": {"$near": 1}}, "filter.k.$near"),
        ({"k": {"x": {}}}, "filter.k.x"),
        ({1: 2}, "filter"),
        ([1], "filter"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            to_filter(bad)
        assert caught.value.field == field
    with pytest.raises(InvalidInputError, match="deeper than 64"):
        to_filter(deep)
