"""Keyed digests: words that no tokeniser changes, and filters that mean the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInputError, NotSupportedError
from holdfast.sealing.blind import MAX_FIELDS, Blind
from holdfast.testing.filter_cases import TRUTH
from holdfast.values.filters import matches, parse
from holdfast.values.payload_filters import filterable
from holdfast.values.text import LANGUAGES, tokenize

BLIND = Blind(bytes(range(32)))
CASES = [case for cases in TRUTH.values() for case in cases]


@given(st.text(min_size=1))
def test_a_digest_is_one_word_that_is_not_stemmed(word: str) -> None:
    digest = BLIND.digest("word", word)
    assert re.fullmatch("[0-9bcdfgh]{24}", digest)
    # A log is in English; the words of facts, in any language, follow a sealed text.
    assert tokenize(f"{digest} {digest}?") == [digest, digest]
    for language in LANGUAGES:
        assert tokenize(f"holdfast.sealed:AQ {digest}", language=language) == [digest]


@given(st.text(), st.text())
def test_two_texts_have_the_same_words_only_if_they_have_the_same_lexemes(a: str, b: str) -> None:
    same = sorted(tokenize(a)) == sorted(tokenize(b))
    assert (BLIND.words(a) == BLIND.words(b)) is same


def test_another_key_gives_other_digests_and_kinds_do_not_meet() -> None:
    other = Blind(bytes(32))
    assert BLIND.digest("word", "tide") != other.digest("word", "tide")
    assert BLIND.digest("word", "tide") != BLIND.digest("name", "tide")
    assert BLIND.value(("a",), "x") != BLIND.value(("b",), "x")
    assert BLIND.key(("a", "b")) != BLIND.key(("a.b",))


def test_every_filter_means_the_same_on_digests_or_is_refused() -> None:
    compared = refused = 0
    for asked, metadata, expected in CASES:
        wanted = parse(asked)
        try:
            blind = BLIND.filter(wanted, whole=False)
        except NotSupportedError as error:
            refused += error.capability.startswith(("$gt", "$lt", "$equals"))
            continue
        assert matches(blind, BLIND.fields(metadata)) is expected, (asked, metadata)
        compared += 1
    assert compared > 60
    assert compared + refused == len(CASES)
    assert refused > 20


def test_every_filter_of_payloads_means_the_same_on_digests() -> None:
    compared = 0
    for asked, metadata, _ in CASES:
        flat: dict[str, Any] = filterable(metadata)
        wanted = parse(asked)
        if "." in str(asked) or "$equals" in str(asked):
            continue
        try:
            blind = BLIND.filter(wanted, whole=True)
        except NotSupportedError:
            continue
        assert matches(blind, BLIND.scalars(metadata)) is matches(wanted, flat), (asked, metadata)
        compared += 1
    assert compared > 40


@pytest.mark.parametrize("number", [2**53, 2**60, 1e300, -(2**63), 10**15])
def test_equal_numbers_have_the_same_digest(number: float) -> None:
    for other in (number, float(number)):
        assert matches(parse({"n": other}), {"n": number}) is matches(
            BLIND.filter(parse({"n": other}), whole=False), BLIND.fields({"n": number})
        )


def test_a_value_with_too_many_fields_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="16384"):
        BLIND.fields({str(at): at for at in range(MAX_FIELDS + 1)})
    with pytest.raises(InvalidInputError, match="16384"):
        BLIND.scalars({str(at): at for at in range(MAX_FIELDS + 1)})
    with pytest.raises(InvalidInputError, match="16384"):
        BLIND.fields({"list": list(range(MAX_FIELDS * 10))})
