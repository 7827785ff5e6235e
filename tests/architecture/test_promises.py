"""Every promise has one test in the same words, and every contract test is a promise."""

from __future__ import annotations

import pytest

from holdfast.testing.harness import CONTRACTS
from scripts import generate_docs
from scripts.generate_docs import PROTOCOLS, generated, promises


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_promise_has_a_test_in_the_same_words_and_every_test_is_a_promise(
    contract: str,
) -> None:
    promised = [promise.test for promise in promises(PROTOCOLS[contract])]
    assert len(promised) == len(set(promised)), "a promise is made twice"
    assert sorted(promised) == sorted(generate_docs.tests(contract))


def test_the_generated_pages_are_fresh() -> None:
    stale = [path.name for path, text in generated().items() if path.read_text() != text]
    assert stale == [], "run `make docs`"
