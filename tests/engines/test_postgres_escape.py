"""What the escape of U+0000 promises."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.engines.postgres.escape import escape, unescape

# Few letters, so that every neighbourhood of the two special ones comes up.
TEXTS = st.text(st.sampled_from("\x00\x01\x0201é")) | st.text()


@given(TEXTS)
@example("\x00\x010\x011")
def test_a_text_comes_back_as_it_was_escaped(text: str) -> None:
    assert unescape(escape(text)) == text


@given(TEXTS)
def test_an_escaped_text_never_holds_u0000(text: str) -> None:
    assert "\x00" not in escape(text)


@given(TEXTS, TEXTS)
def test_the_order_of_texts_is_kept(one: str, other: str) -> None:
    assert (escape(one) < escape(other)) == (one < other)


@given(st.text(st.characters(exclude_characters="\x00\x01", exclude_categories=["Cs"])))
def test_a_text_without_the_two_special_letters_stays_as_it_is(text: str) -> None:
    assert escape(text) == unescape(text) == text
