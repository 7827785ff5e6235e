"""Every promise has one test in the same words, and every contract test is a promise."""

from __future__ import annotations

import pytest

from holdfast.testing.harness import CONTRACTS
from scripts import generate_docs, reference_pages
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


def test_the_page_of_contracts_has_what_callers_call_and_no_internals() -> None:
    page = generate_docs.contracts_page()
    shown = [name for name in generate_docs.INTERNAL if f"**`{name}`**" in page]
    assert shown == []
    assert "**`list_sessions`**" in page


def test_the_page_of_names_has_the_parameters_of_what_callers_construct() -> None:
    page = reference_pages.api_page()
    assert "`App(name: str, *, description" in page
    assert "- `schedule(cron: str, *, timezone" in page
    assert "`Worker(app: App, state" in page
