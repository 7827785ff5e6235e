"""Nothing is lost between A2A's words and ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import ChatMessage
from holdfast.content import (
    AudioBlock,
    DataBlock,
    DocumentBlock,
    ErrorBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    VideoBlock,
)
from holdfast.errors import InvalidInputError
from holdfast.server.json_values import (
    MAX_VALUES,
    object_from_wire,
    object_to_wire,
    value_to_wire,
)
from holdfast.server.wire import TYPE, WIRE, message_from_wire, message_to_wire, part_to_wire

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ids = st.text("abcdef-0123456789", min_size=1, max_size=20)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=3)
media_types = st.sampled_from(["", "image/png", "audio/wav", "video/mp4", "application/pdf", "odd"])


def _media(kind: Any) -> st.SearchStrategy[Any]:
    by_bytes = st.builds(kind, data=st.binary(max_size=8), media_type=media_types, name=texts)
    return by_bytes | st.builds(kind, url=texts, media_type=media_types, name=texts)


simple = (
    st.builds(TextBlock, texts)
    | st.builds(DataBlock, values)
    | _media(ImageBlock)
    | _media(AudioBlock)
    | _media(VideoBlock)
    | _media(DocumentBlock)
    | st.builds(ToolUseBlock, id=texts, name=texts, input=objects)
    | st.builds(ReasoningBlock, texts, signature=texts)
    | st.builds(ErrorBlock, texts, code=texts)
    | st.builds(lambda more: UnknownBlock({**more, "type": "hologram"}), objects)
)
blocks = simple | st.builds(
    ToolResultBlock,
    tool_use_id=texts,
    content=st.lists(simple.filter(lambda one: one.type != "hologram"), max_size=2),
    is_error=st.booleans(),
)
our_messages = st.builds(
    ChatMessage,
    st.sampled_from(["user", "assistant"]),
    st.lists(blocks, max_size=4),
    name=texts,
    metadata=objects,
    id=ids,
)


def _part(content: dict[str, Any], metadata: dict[str, Any], named: tuple[str, str]) -> a2a.Part:
    part = a2a.Part(filename=named[0], media_type=named[1])
    if "data" in content:
        part.data.CopyFrom(part_to_wire(DataBlock(content["data"])).data)
    else:
        for key, value in content.items():
            setattr(part, key, value)
    if metadata:
        part.metadata.CopyFrom(object_to_wire(metadata))
    return part


contents = (
    st.fixed_dictionaries({"text": texts})
    | st.fixed_dictionaries({"raw": st.binary(max_size=8)})
    | st.fixed_dictionaries({"url": texts})
    | st.fixed_dictionaries({"data": values})
)
their_parts = st.builds(_part, contents, objects, st.tuples(texts, media_types))


def _message(
    role: Any, parts: list[a2a.Part], metadata: dict[str, Any], more: tuple[list[str], list[str]]
) -> a2a.Message:
    message = a2a.Message(
        message_id="m1", role=role, parts=parts, extensions=more[0], reference_task_ids=more[1]
    )
    if metadata:
        message.metadata.CopyFrom(object_to_wire(metadata))
    return message


their_messages = st.builds(
    _message,
    st.sampled_from([a2a.ROLE_USER, a2a.ROLE_AGENT]),
    st.lists(their_parts, max_size=4),
    objects,
    st.tuples(st.lists(texts, max_size=2), st.lists(texts, max_size=2)),
)


@settings(deadline=None)
@given(our_messages)
def test_our_message_comes_back_as_it_was(message: ChatMessage) -> None:
    back = message_from_wire(message_to_wire(message, task_id="t1", context_id="c1"))
    assert replace(back, created_at=message.created_at) == message


@settings(deadline=None)
@given(their_messages)
def test_their_message_comes_back_as_it_was(message: a2a.Message) -> None:
    assert message_to_wire(message_from_wire(message)) == message


def test_a_number_too_large_for_the_wire_is_sent_digit_by_digit() -> None:
    part = part_to_wire(DataBlock({"n": 2**60, "far": 10**400}))
    assert part.data.struct_value["n"] == str(2**60)
    assert part.data.struct_value["far"] == str(10**400)


@pytest.mark.parametrize(
    "inner",
    [
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": [{"type": "image", "blob_ref": "b"}],
        },
        {"type": "tool_use", "id": 7, "name": "n"},
    ],
)
def test_a_client_can_neither_name_a_blob_nor_send_a_broken_block(inner: dict[str, Any]) -> None:
    message = a2a.Message(message_id="m1", role=a2a.ROLE_USER, parts=[a2a.Part()])
    message.parts[0].data.CopyFrom(part_to_wire(DataBlock(inner)).data)
    message.parts[0].metadata.CopyFrom(object_to_wire({TYPE: inner["type"]}))
    with pytest.raises(InvalidInputError, match=r"message\.parts\[0\]"):
        message_from_wire(message)


@pytest.mark.parametrize("wrong", ["empty part", "nan", "our key"])
def test_what_cannot_be_kept_is_refused(wrong: str) -> None:
    message = a2a.Message(message_id="m1", role=a2a.ROLE_USER, parts=[a2a.Part(text="x")])
    if wrong == "empty part":
        message.parts.append(a2a.Part())
    elif wrong == "nan":
        message.metadata["n"] = float("nan")
    else:
        message.metadata[WIRE] = "x"
    with pytest.raises(InvalidInputError):
        message_from_wire(message)


def test_too_many_values_are_refused_before_they_are_converted() -> None:
    message = a2a.Message(message_id="m1", role=a2a.ROLE_USER, parts=[a2a.Part(text="hi")])
    message.metadata.update({"l": [1] * (MAX_VALUES + 1)})
    with pytest.raises(InvalidInputError, match="has more than 10000 JSON values"):
        message_from_wire(message)
    spread = a2a.Message(message_id="m1", role=a2a.ROLE_USER)
    for _ in range(101):
        spread.parts.add(text="hi").metadata.update({"l": [1] * 100})
    with pytest.raises(InvalidInputError, match="message: has more than 10000 JSON values"):
        message_from_wire(spread)


@pytest.mark.parametrize("kind", [["x"], {"a": 1}, 7])
def test_a_type_that_is_no_text_is_metadata_like_any_other(kind: object) -> None:
    message = a2a.Message(message_id="m1", role=a2a.ROLE_USER)
    message.parts.add(url="https://example.org/x").metadata.update({"holdfast.type": kind})
    assert len(message_from_wire(message).content) == 1


@given(values)
def test_a_json_value_comes_back_from_the_wire(value: Any) -> None:
    assert object_from_wire(value_to_wire(value), field="x") == value


@given(objects)
def test_values_are_those_that_protobuf_makes(value: dict[str, Any]) -> None:
    assert object_to_wire(value) == ParseDict(value, Struct())
