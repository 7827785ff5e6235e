"""The decoder of stored messages: the same values and errors as the codec's, block by block."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.values import codec
from holdfast.values.content import (
    KNOWN_BLOCKS,
    ROLES,
    ChatMessage,
    ContentBlock,
    TextBlock,
    UnknownBlock,
    stored_message,
)
from holdfast.values.errors import CodecError
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from holdfast.values.stored_messages import message_from_body, messages_from_rows
from tests.values.test_codec import BLOCKS, JSON, TEXT

WHEN = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def by_codec(body: str | bytes) -> ChatMessage:
    """What the body is when it is read as plain objects first."""
    payload = codec.decode_json(body)
    if not isinstance(payload, dict):
        raise CodecError("a stored message is not a JSON object")
    return codec.message_from_payload(payload, id="m1", created_at=WHEN, seq=7)


def outcome(read: Any, body: str | bytes) -> tuple[Any, ...]:
    """The message by its parts (repr tells 1 from 1.0 and True, and the order of keys)."""
    try:
        message = read(body)
    except CodecError as error:
        return ("error", str(error))
    return (type(message), repr(message))


def fast(body: str | bytes) -> ChatMessage:
    return message_from_body(body, id="m1", created_at=WHEN, seq=7)


FIELDS = sorted({slot for kind in KNOWN_BLOCKS.values() for slot in kind.__dataclass_fields__})
ODD: st.SearchStrategy[Any] = (
    st.sampled_from([*ROLES, "", "aGk=", "%%", [], {}, None, True, 0, 1, 1.0, 2, -1])
    | JSON
    | st.lists(st.builds(codec.block_to_json, BLOCKS), max_size=2)
)
ODD_BLOCKS = st.dictionaries(
    st.sampled_from([*FIELDS, "type", "more"]), ODD, max_size=5
) | st.builds(
    lambda kind, more: {"type": kind, **more},
    st.sampled_from([*KNOWN_BLOCKS, "hologram"]),
    st.dictionaries(st.sampled_from([*FIELDS, "more"]), ODD, max_size=4),
)
WHOLE_BLOCKS = st.builds(codec.block_to_json, BLOCKS)
SOUND = st.fixed_dictionaries(
    {"role": st.sampled_from(ROLES), "content": st.lists(WHOLE_BLOCKS, max_size=4)},
    optional={"v": st.just(1), "name": TEXT, "metadata": st.dictionaries(TEXT, JSON, max_size=3)},
)
ODD_CONTENT = st.lists(WHOLE_BLOCKS | ODD_BLOCKS, min_size=1, max_size=3)
CHANGES = st.dictionaries(
    st.sampled_from(["role", "v", "name", "metadata", "more"]), ODD, max_size=1
) | st.fixed_dictionaries({"content": ODD_CONTENT | ODD})
PAYLOADS = st.builds(lambda sound, changes: {**sound, **changes}, SOUND, CHANGES)


@given(PAYLOADS, st.booleans(), st.booleans())
def test_every_payload_is_read_as_the_codec_reads_it(
    payload: dict[str, Any], spaced: bool, ascii_only: bool
) -> None:
    separators = (" , ", " : ") if spaced else (",", ":")
    body = json.dumps(payload, separators=separators, ensure_ascii=ascii_only)
    assert outcome(fast, body) == outcome(by_codec, body)
    assert outcome(fast, body.encode()) == outcome(by_codec, body.encode())


@given(st.text(), st.binary())
@example("", b"\xff")
@example("[]", b'"\xff"')
def test_text_that_is_no_message_is_the_same_codec_error(text: str, data: bytes) -> None:
    for body in (text.encode(errors="replace").decode(), data):
        assert outcome(fast, body) == outcome(by_codec, body)


_TEXT = '{"role":"user","content":[{"type":"text","text":%s}]}'
_USE = '{"role":"user","content":[{"type":"tool_use","id":"1","name":"n","input":%s}]}'


@pytest.mark.parametrize(
    "body",
    [
        '{"role":"user","role":"tool","content":[],"content":[{"type":"text","text":"b"}]}',
        '{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}',
        '{"role":"user","content":[{"type":"text","type":"reasoning","text":"b"}]}',
        '{"role":"user","content":[{"type":"hologram","type":"text","text":"b"}]}',
        '{"role":"user","content":[{"text":"b","type":"text"}]}',
        '{"role":"user","content":[{"type":"text","text":"a","tone":"warm"}]}',
        '{"role":"user","content":[{"type":"reasoning","text":"a","effort":3}]}',
        '{"role":"user","content":[{"type":"text"}]}',
        '{"role":"user","content":[{"type":"data"}]}',
        '{"role":"user","content":[{"type":"data","data":null}]}',
        '{"role":"user","content":[{"type":"error","message":"m","code":null}]}',
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":null}]}',
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":1}]}',
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"x"}]}]}',
        '{"role":"user","content":[{"type":"image","url":null,"data":"aGk="}]}',
        '{"role":"user","content":"hi","v":1}',
        '{"role":"user","content":[],"v":1.0}',
        '{"role":"user","content":[],"v":true}',
        '{"role":"user","content":[],"v":2}',
        '{"role":"user","content":[],"id":"m2","seq":3,"created_at":null}',
        *(_TEXT % text for text in ("1", "null", '"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"')),
        *(
            _USE % f'{{"a":{number}}}'
            for number in ("NaN", "1e400", "-0.0", "1e16", "1" + "0" * 30, str(2**64), "0.1", "01")
        ),
        _USE % '{"a":1,"a":2.0}',
        _USE % ("[" * 70 + "]" * 70),
        '{"role":"user","content":[]} ',
        '{"role":"user","content":[]}x',
        "null",
        "",
    ],
)
def test_odd_bodies_are_read_as_the_codec_reads_them(body: str) -> None:
    assert outcome(fast, body) == outcome(by_codec, body)


@given(st.lists(BLOCKS, max_size=4), TEXT, st.dictionaries(TEXT, JSON, max_size=3))
def test_a_page_of_messages_comes_back_equal_and_lossless(
    blocks: list[ContentBlock], name: str, metadata: dict[str, Any]
) -> None:
    sent = ChatMessage("tool", blocks, name=name, metadata=metadata, id="m1", created_at=WHEN)
    body = codec.encode_json(codec.message_to_payload(sent))
    first, second = messages_from_rows([(body, "m1", WHEN, 7), (body, "m1", WHEN, 8)])
    assert first == second == sent
    assert (first.seq, second.seq) == (7, 8)
    assert codec.encode_json(codec.message_to_payload(first)) == body
    # Each is the caller's to change.
    second.metadata["x"] = 1
    second.content.append(TextBlock("x"))
    assert first == sent


def test_a_new_block_among_known_ones_is_kept_whole() -> None:
    body = '{"role":"user","content":[{"type":"text","text":"a"},{"type":"hologram","x":[1.0]}]}'
    assert fast(body).content == [TextBlock("a"), UnknownBlock({"type": "hologram", "x": [1.0]})]


def test_text_without_a_type_is_text_in_the_transcript_and_in_the_event() -> None:
    payload = {"role": "user", "content": [{"text": "low "}, {"type": "text", "text": "tide"}]}
    event = Event(AgentId.parse("a1"), "s1", "message", payload)
    assert event.to_message().content == [TextBlock("low "), TextBlock("tide")]
    assert fast(codec.encode_json(payload)).content == event.to_message().content
    for odd in ({"text": 1}, {"text": "hi", "tone": "warm"}):
        with pytest.raises(CodecError, match="no type"):
            fast(codec.encode_json({"role": "user", "content": [odd]}))


def test_the_first_damaged_row_of_a_page_raises() -> None:
    good = codec.encode_json(codec.message_to_payload(ChatMessage.user("hi")))
    with pytest.raises(CodecError, match="role 'nobody'"):
        messages_from_rows(
            [(good, "m1", WHEN, 1), ('{"role":"nobody","content":[]}', "m2", WHEN, 2)]
        )


def test_a_stored_message_is_a_message_like_any_other() -> None:
    made = ChatMessage("user", [TextBlock("hi")], "ana", {"a": 1}, "m1", WHEN, 7)
    read = stored_message("user", [TextBlock("hi")], "ana", {"a": 1}, "m1", WHEN, 7)
    assert type(read) is ChatMessage
    assert (read, repr(read)) == (made, repr(made))
    assert pickle.loads(pickle.dumps(read)) == copy.deepcopy(read) == made  # noqa: S301
    assert dataclasses.asdict(read) == dataclasses.asdict(made)
    assert dataclasses.replace(read, name="bo") == dataclasses.replace(made, name="bo")
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.name = "bo"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        object.__setattr__(read, "other", 1)
