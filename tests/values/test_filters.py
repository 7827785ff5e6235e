from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.testing.filter_cases import REFUSED, TRUTH, FilterCase, Refusal, as_markdown
from holdfast.testing.hostile import TEXTS
from holdfast.values.errors import InvalidInputError
from holdfast.values.filters import (
    And,
    Compare,
    Equals,
    Exists,
    Not,
    OneOf,
    Or,
    escape,
    matches,
    parse,
)

DOCS = Path(__file__).parents[2] / "docs/reference/filters.md"
KEYS = st.sampled_from(["a", "b", "a.b"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, 2.5, "", "a", "b"])
ORDERED = st.sampled_from([0, 1, 1.0, 2.5, "", "a", "b"])
CONDITIONS = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.fixed_dictionaries({"$eq": SCALARS}),
    st.fixed_dictionaries({"$in": st.lists(SCALARS, max_size=3)}),
    st.fixed_dictionaries({"$gt": ORDERED}),
    st.fixed_dictionaries({"$gte": ORDERED, "$lt": ORDERED}),
    st.fixed_dictionaries({"$exists": st.booleans()}),
)
FILTERS = st.recursive(
    st.dictionaries(KEYS, CONDITIONS, max_size=2),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$and": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"$or": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"$not": inner}),
    ),
    max_leaves=6,
)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.just("b"), SCALARS)
METADATA = st.dictionaries(st.sampled_from(["a", "b"]), VALUES)


@pytest.mark.parametrize(
    "case", [case for cases in TRUTH.values() for case in cases], ids=lambda case: str(case.filter)
)
def test_the_evaluator_keeps_to_the_truth_table(case: FilterCase) -> None:
    assert matches(parse(case.filter), case.metadata) is case.matches


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: refusal.field)
def test_a_filter_that_cannot_be_read_is_refused_by_its_path(refusal: Refusal) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse(refusal.filter)
    assert refused.value.field == refusal.field
    assert str(refused.value).isprintable()


def test_no_filter_lets_everything_through() -> None:
    assert parse(None) == parse({}) == And(())


def test_a_filter_becomes_a_tree_of_seven_kinds_of_node() -> None:
    tree = parse(
        {
            "a": 1,
            "b.c": {"$nin": ["x"]},
            "$or": [{"d": {"$lte": 2}}, {"e": {"$exists": False}}],
            "f": {"$equals": (1, "x")},
        }
    )
    assert tree == And(
        (
            OneOf(("a",), (1,)),
            Not(OneOf(("b", "c"), ("x",))),
            Or((Compare(("d",), "$lte", 2), Not(Exists(("e",))))),
            Equals(("f",), [1, "x"]),
        )
    )


@given(FILTERS, METADATA)
def test_a_filter_or_its_negation_holds_and_never_both(
    asked: dict[str, Any], metadata: dict[str, Any]
) -> None:
    assert matches(parse(asked), metadata) is not matches(parse({"$not": asked}), metadata)


@given(KEYS, SCALARS, METADATA)
def test_ne_and_nin_are_the_negations_of_eq_and_in(
    key: str, value: Any, metadata: dict[str, Any]
) -> None:
    assert matches(parse({key: {"$ne": value}}), metadata) is not matches(
        parse({key: {"$eq": value}}), metadata
    )
    assert matches(parse({key: {"$nin": [value]}}), metadata) is not matches(
        parse({key: {"$in": [value]}}), metadata
    )


@given(FILTERS, FILTERS, METADATA)
def test_de_morgan_holds(
    left: dict[str, Any], right: dict[str, Any], metadata: dict[str, Any]
) -> None:
    neither = {"$and": [{"$not": left}, {"$not": right}]}
    assert matches(parse({"$not": {"$or": [left, right]}}), metadata) is matches(
        parse(neither), metadata
    )


@given(
    st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
)
def test_numbers_compare_by_what_their_json_text_says(left: float, right: float) -> None:
    exact_left, exact_right = Decimal(repr(left)), Decimal(repr(right))
    assert matches(parse({"k": right}), {"k": left}) is (exact_left == exact_right)
    assert matches(parse({"k": {"$lt": right}}), {"k": left}) is (exact_left < exact_right)
    assert matches(parse({"k": {"$gte": right}}), {"k": left}) is (exact_left >= exact_right)


@given(st.text(st.characters(codec="utf-8")))
def test_an_escaped_key_is_that_key(key: str) -> None:
    assert parse({escape(key): 1}) == OneOf((key,), (1,))


@pytest.mark.parametrize("depth", [65, 10_000])
def test_a_filter_nested_too_deep_is_refused(depth: int) -> None:
    between: dict[str, Any] = {"k": 1}
    on_a_key: dict[str, Any] = {"$eq": 1}
    for _ in range(depth):
        between, on_a_key = {"$not": between}, {"$not": on_a_key}
    for deep in (between, {"k": on_a_key}):
        with pytest.raises(InvalidInputError, match="deeper than 64"):
            parse(deep)


def test_the_errors_of_hostile_keys_print() -> None:
    for hostile in TEXTS:
        if not isinstance(hostile.value, str):
            continue
        for bad in ({hostile.value: {"$near": 1}}, {"k": {hostile.value: b""}}):
            with pytest.raises(InvalidInputError) as refused:
                parse(bad)
            assert str(refused.value).isprintable(), hostile.name
            assert len(str(refused.value)) < 1000, hostile.name


def test_the_reference_prints_the_truth_table() -> None:
    _, _, after = DOCS.read_text().partition("<!-- truth table -->\n")
    table, _, _ = after.partition("<!-- end of the truth table -->")
    assert table.strip() == as_markdown().strip()
