from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.values.errors import InvalidInputError
from holdfast.values.ranking import (
    K1,
    B,
    LexicalIndex,
    blend,
    fuse,
    idf,
    normalise,
    saturation,
)

WORDS = st.sampled_from(["tide", "low", "high", "moon", "sea"])
TEXTS = st.dictionaries(st.sampled_from("abcdef"), st.lists(WORDS, max_size=8), max_size=6)
ARM = st.dictionaries(
    st.sampled_from("abcdef"), st.floats(-100, 100, allow_nan=False, width=32), max_size=6
)


def _bm25(texts: dict[str, list[str]], query: list[str]) -> dict[str, float]:
    """BM25 as the textbook writes it, over all texts and words."""
    average = sum(map(len, texts.values())) / max(1, len(texts))
    found = {}
    for name, words in texts.items():
        total = 0.0
        for word in sorted(set(query)):
            holding = sum(word in other for other in texts.values())
            times = Counter(words)[word]
            if times:
                weight = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
                total += (
                    weight * times * (K1 + 1) / (times + K1 * (1 - B + B * len(words) / average))
                )
        if total:
            found[name] = total
    return found


@given(TEXTS, st.lists(WORDS))
def test_the_index_scores_as_the_formula_says(
    texts: dict[str, list[str]], query: list[str]
) -> None:
    index = LexicalIndex()
    for name, words in texts.items():
        index.add(name, words)
    assert index.scores(query) == pytest.approx(_bm25(texts, query))


@given(TEXTS, TEXTS, st.sets(st.sampled_from("abcdef")))
def test_an_index_after_changes_equals_a_new_one(
    first: dict[str, list[str]], then: dict[str, list[str]], gone: set[str]
) -> None:
    index, fresh = LexicalIndex(), LexicalIndex()
    for texts in (first, then):
        for name, words in texts.items():
            index.add(name, words)
    for name in sorted(gone):
        assert index.remove(name) == (name in first or name in then)
        assert name not in index
    for name, words in {**first, **then}.items():
        if name not in gone:
            fresh.add(name, words)
            assert name in index
    assert index == fresh
    assert len(index) == len(fresh)


def test_only_the_allowed_are_scored_and_their_scores_stay() -> None:
    index = LexicalIndex()
    for name, words in {"a": ["tide"], "b": ["tide", "low"], "c": ["moon"]}.items():
        index.add(name, words)
    everything = index.scores(["tide"])
    assert index.scores(["tide"], {"b", "c"}) == {"b": everything["b"]}
    assert index.scores(["tide"], lambda name: name == "a") == {"a": everything["a"]}
    assert index.scores(["tide"], set()) == {}


def test_an_empty_index_and_an_empty_query_score_nothing() -> None:
    index = LexicalIndex()
    assert index.scores(["tide"]) == {}
    index.add("a", [])
    assert index.scores(["tide"]) == {}
    assert index.scores([]) == {}


def test_a_repeated_word_of_the_query_counts_once() -> None:
    index = LexicalIndex()
    index.add("a", ["tide", "low"])
    assert index.scores(["tide", "tide"]) == index.scores(["tide"])


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_rarer_word_weighs_more_and_every_word_weighs(documents: int, holding: int) -> None:
    holding = min(holding, documents)
    assert idf(documents, holding) > 0
    assert idf(documents + 1, holding) > idf(documents, holding)


@given(st.integers(1, 50), st.integers(1, 50))
def test_repetition_adds_less_and_less_and_length_takes_away(times: int, length: int) -> None:
    gain = saturation(times, length, 10.0)
    more = saturation(times + 1, length, 10.0)
    most = saturation(times + 2, length, 10.0)
    assert 0 < most - more < more - gain
    assert saturation(times, length + 1, 10.0) < gain
    assert gain < K1 + 1


@given(ARM)
def test_one_arm_alone_lies_above_0_and_up_to_1_in_the_same_order(arm: dict[str, float]) -> None:
    alone = normalise(arm)
    assert alone.keys() == arm.keys()
    assert all(0 < score <= 1 for score in alone.values())
    assert not arm or max(alone.values()) == 1
    _same_order(arm, alone)


@given(ARM, ARM, st.floats(0, 1))
def test_fused_scores_lie_from_0_to_1_for_whatever_either_arm_found(
    left: dict[str, float], right: dict[str, float], weight: float
) -> None:
    fused = fuse(left, right, lexical_weight=weight)
    assert fused.keys() == left.keys() | right.keys()
    assert all(0 <= score <= 1 for score in fused.values())


@given(ARM)
def test_two_arms_that_agree_keep_their_order(arm: dict[str, float]) -> None:
    _same_order(arm, fuse(arm, arm))


def _same_order(arm: dict[str, float], after: dict[str, float]) -> None:
    for one, score in arm.items():
        for other, second in arm.items():
            if score >= second:
                assert after[one] >= after[other]


def test_an_arm_that_tells_no_order_gives_1_above_0_and_else_0() -> None:
    assert fuse({"a": 7.0}, {}) == {"a": 0.6}
    assert fuse({}, {"a": 0.5, "b": 0.5}) == {"a": 0.4, "b": 0.4}
    assert fuse({}, {"a": -0.5}) == {"a": 0.0}
    assert fuse({"a": 7.0}, {"a": 0.5}) == {"a": 1.0}


def test_a_text_without_a_word_of_the_query_is_the_least_of_the_lexical_arm() -> None:
    fused = fuse({"a": 4.0, "b": 2.0}, {"a": 0.1, "b": 0.1, "c": 0.3})
    assert fused == pytest.approx({"a": 0.6, "b": 0.3, "c": 0.4})


def test_the_weight_decides_between_arms_that_disagree() -> None:
    lexical, semantic = {"a": 2.0, "b": 1.0}, {"a": 0.1, "b": 0.9}
    assert fuse(lexical, semantic) == pytest.approx({"a": 0.6, "b": 0.4})
    assert fuse(lexical, semantic, lexical_weight=0.2) == pytest.approx({"a": 0.2, "b": 0.8})


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_a_weight_outside_0_to_1_is_refused(weight: float) -> None:
    with pytest.raises(InvalidInputError) as refused:
        fuse({}, {}, lexical_weight=weight)
    assert refused.value.field == "lexical_weight"


UNIT = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1), max_size=6)


@given(UNIT, UNIT)
def test_blended_scores_lie_from_0_to_1_for_whatever_has_a_score_or_a_link(
    scores: dict[str, float], linked: dict[str, float]
) -> None:
    blended = blend(scores, linked)
    assert blended.keys() == scores.keys() | linked.keys()
    assert all(0 <= score <= 1 for score in blended.values())
    assert blend(scores, {}) == scores


def test_a_link_lifts_a_text_above_its_equal() -> None:
    blended = blend({"a": 0.5, "b": 0.5}, {"b": 0.5})
    assert blended["b"] > blended["a"]
