"""Any text as an id, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.keys import id_of, key_of, short_id_of, text_of
from holdfast.testing.hostile import TEXTS
from holdfast.values.checks import check_id
from holdfast.values.owners import RESERVED


@given(st.text() | st.text(alphabet='[]"sha256:\\'), st.text() | st.text(alphabet='[]"\\'))
def test_different_texts_have_different_ids(one: str, other: str) -> None:
    assert text_of(id_of(one)) == one
    assert (id_of(one) == id_of(other)) == (one == other)
    assert (short_id_of(one) == short_id_of(other)) == (one == other)
    assert (key_of(one, other) == key_of(other, one)) == (one == other)
    assert key_of(one + other) != key_of(one, other)


@pytest.mark.parametrize("text", [one.value for one in TEXTS if isinstance(one.value, str)])
def test_every_text_has_a_key_that_is_an_id(text: str) -> None:
    assert check_id("key", key_of(text, "x"))
    assert key_of(text, "x") != key_of("x", text)
    assert check_id("key", short_id_of(text))
    assert check_id("key", short_id_of(text[:100] * 600 + "x"))


def test_a_reserved_id_of_a_framework_reaches_nobody_elses_data() -> None:
    named = f"{RESERVED}owner:3:ana:t1"
    assert not id_of(named).startswith(RESERVED)
    assert text_of(id_of(named)) == named
