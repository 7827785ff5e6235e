"""agtype: read as it is written, whatever stands in it."""

from __future__ import annotations

import contextlib
import random
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.values.errors import CodecError
from holdfast_age.agtype import from_agtype, same, to_agtype

HOSTILE = [
    "a:b{c}*",
    "'; DROP SCHEMA ag_catalog CASCADE; --",
    "$$ RETURN 1 $$) AS (a agtype); --",
    '"}) DETACH DELETE n //',
    "` MATCH (n) DETACH DELETE n //",
    "\\",
    "'\\'",
    "$1",
    "/* */",
    "::vertex",
    "\u202e\u200b\U0001f600",
]


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(HOSTILE),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner)
    ),
    max_leaves=12,
)


@given(_VALUES)
def test_an_agtype_text_is_read_as_it_was_written(value: Any) -> None:
    text = to_agtype(value)
    assert same(from_agtype(text), value)
    assert same(from_agtype(f"[{text}, 1::numeric]"), [value, Decimal(1)])


@given(st.text('{}[]:,"\\ avbt1.-:numeric', max_size=30))
def test_a_damaged_agtype_is_a_value_or_a_codec_error(text: str) -> None:
    with contextlib.suppress(CodecError):
        from_agtype(f"{text}::")


def random_value(dice: random.Random, depth: int) -> Any:
    """Any JSON value, the awkward ones first."""
    roll = dice.randrange(8 if depth else 6)
    if roll == 6:
        return [random_value(dice, depth - 1) for _ in range(dice.randrange(4))]
    if roll == 7:
        return {_text(dice): random_value(dice, depth - 1) for _ in range(dice.randrange(4))}
    number = dice.choice((-1, 1)) * 10 ** dice.uniform(-300, 300)
    whole = dice.randrange(-(2**63), 2**63)
    return (None, True, whole, number, _text(dice), dice.choice(HOSTILE))[roll]


def _text(dice: random.Random) -> str:
    return "".join(chr(dice.choice((dice.randrange(0x300), 0x1F600))) for _ in range(5))
