from __future__ import annotations

import enum
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.testing.hostile import JSON_VALUES, KEPT
from holdfast.values import codec
from holdfast.values.content import (
    ChatMessage,
    ContentBlock,
    DataBlock,
    ErrorBlock,
    ImageBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from holdfast.values.errors import CodecError, InvalidInputError

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
LEAF_BLOCKS: st.SearchStrategy[ContentBlock] = st.one_of(
    st.builds(TextBlock, TEXT),
    st.builds(ImageBlock, data=st.binary(), name=TEXT),
    st.builds(ToolUseBlock, id=TEXT, name=TEXT, input=st.dictionaries(TEXT, JSON, max_size=3)),
    st.builds(DataBlock, JSON),
    st.builds(ErrorBlock, TEXT, code=TEXT),
    st.builds(UnknownBlock, st.fixed_dictionaries({"type": st.just("hologram"), "x": JSON})),
)
BLOCKS = LEAF_BLOCKS | st.builds(
    ToolResultBlock, TEXT, st.lists(LEAF_BLOCKS, max_size=3), st.booleans()
)


@given(JSON)
def test_any_json_value_comes_back_exactly(value: Any) -> None:
    back = codec.decode_json(codec.encode_json(value))
    # repr tells -0.0 from 0.0, 1 from 1.0 and True, and the order of keys.
    assert repr(back) == repr(value)


@given(st.lists(BLOCKS, max_size=4), TEXT, st.dictionaries(TEXT, JSON, max_size=3))
def test_any_message_comes_back_exactly(
    blocks: list[ContentBlock], name: str, metadata: dict[str, Any]
) -> None:
    message = ChatMessage("user", blocks, name=name, metadata=metadata)
    back = codec.decode_message(codec.encode_message(message))
    assert back == message
    assert repr(back.content) == repr(message.content)


@pytest.mark.parametrize("hostile", JSON_VALUES, ids=lambda hostile: hostile.name)
def test_each_hostile_value_is_kept_exactly_or_refused(hostile: Any) -> None:
    if hostile.verdict is KEPT:
        back = codec.decode_json(codec.encode_json(hostile.value))
        assert repr(back) == repr(hostile.value)
    else:
        with pytest.raises(InvalidInputError):
            codec.encode_json(hostile.value)


def test_a_refusal_names_the_path_of_the_value() -> None:
    for value, path in (
        ({"a": [1, {"b": math.nan}]}, "payload.a[1].b"),
        ({"a": {"b": 2**63}}, "payload.a.b"),
        ({"a": ["x", "\ud800"]}, "payload.a[1]"),
        ({"a": [(1,)]}, "payload.a[0]"),
        ({1: 2}, "payload"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            codec.encode_json(value, field="payload")
        assert caught.value.field == path


def test_the_path_of_a_hostile_key_still_prints() -> None:
    with pytest.raises(InvalidInputError) as caught:
        codec.encode_json({"\ud800" + "k" * 5000: math.nan})
    assert len(str(caught.value)) < 1000
    str(caught.value).encode()


def test_64_levels_are_kept_and_65_are_refused() -> None:
    value: Any = 0
    for _ in range(64):
        value = [value]
    assert codec.decode_json(codec.encode_json(value)) == value
    with pytest.raises(InvalidInputError, match="64"):
        codec.encode_json([value])


def test_subclasses_are_stored_as_what_they_are_made_of() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    class Level(enum.IntEnum):
        HIGH = 3

    assert codec.encode_json({"c": Colour.RED, "l": Level.HIGH}) == '{"c":"red","l":3}'


@pytest.mark.parametrize("stored", ["", "{", "NaN", "[1,]", b"\xff", '"\\ud800"', "1 2"])
def test_damaged_text_is_a_codec_error(stored: str | bytes) -> None:
    with pytest.raises(CodecError):
        codec.decode_json(stored)


@pytest.mark.parametrize(
    "stored",
    [
        "[]",
        "{}",
        '{"id":"m1","created_at":"2030-01-01T00:00:00+00:00"}',
        '{"id":"m1","created_at":"now","role":"user","content":[]}',
        '{"id":"m1","created_at":"2030-01-01T00:00:00","role":"user","content":[]}',
        '{"id":"m1","created_at":"2030-01-01T00:00:00+00:00","role":"x","content":[]}',
        '{"id":"m1","created_at":"2030-01-01T00:00:00+00:00","role":"user","content":[1]}',
        '{"id":"m1","created_at":"2030-01-01T00:00:00+00:00","role":"user","content":[{"type":"text"}]}',
        '{"id":"m1","created_at":"2030-01-01T00:00:00+00:00","role":"user","content":[{"type":"text","text":1}]}',
        '{"id":"m1","created_at":"2030-01-01T00:00:00+00:00","role":"user","content":[{"type":"image","data":"%%"}]}',
        '{"id":"m1","created_at":"2030-01-01T00:00:00+00:00","role":"user","content":[],"name":3}',
        '{"id":7,"created_at":"2030-01-01T00:00:00+00:00","role":"user","content":[]}',
    ],
)
def test_a_damaged_message_is_a_codec_error(stored: str) -> None:
    with pytest.raises(CodecError):
        codec.decode_message(stored)


def test_a_message_of_a_newer_format_is_refused_with_the_next_step() -> None:
    text = codec.encode_message(ChatMessage.user("hi")).replace('"v":1', '"v":2')
    with pytest.raises(CodecError, match="upgrade holdfast"):
        codec.decode_message(text)


def test_a_known_block_with_a_new_field_is_kept_whole() -> None:
    raw = {"type": "text", "text": "hi", "tone": "warm"}
    block = codec.block_from_json(raw)
    assert block == UnknownBlock(raw)
    assert codec.block_to_json(block) == raw


def test_a_thing_that_is_no_block_is_refused_by_its_place() -> None:
    message = ChatMessage("user", ["hi"])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError) as caught:
        codec.encode_message(message)
    assert caught.value.field == "message.content[0]"


def test_the_time_of_a_message_keeps_its_moment() -> None:
    there = datetime(2030, 1, 1, 5, tzinfo=timezone(timedelta(hours=5)))
    message = ChatMessage.user("hi", created_at=there)
    back = codec.decode_message(codec.encode_message(message))
    assert back.created_at == datetime(2030, 1, 1, tzinfo=UTC)
