"""The one JSON codec of all engines: a closed set of types, never pickle, exact both ways.

A decoded value equals the encoded one: U+0000, ``1e16``, ``-0.0`` and the order of keys included.
What JSON cannot represent exactly is refused before anything is written, with its path in the
error: NaN and infinities, lone surrogates, integers beyond 64 bits, keys that are not text, nesting
deeper than 64, other types.

Messages have a format version. A version that this code does not know raises ``CodecError``.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from holdfast.values.checks import check_id, check_time
from holdfast.values.content import (
    KNOWN_BLOCKS,
    ROLES,
    ChatMessage,
    ContentBlock,
    DataBlock,
    TextBlock,
    ToolResultBlock,
    UnknownBlock,
    stored_message,
)
from holdfast.values.errors import CodecError, InvalidInputError
from holdfast.values.json_hints import json_hint

VERSION = 1
MAX_DEPTH = 64
_SURROGATE = re.compile("[\ud800-\udfff]")
_MIN_INT, _MAX_INT = -(1 << 63), (1 << 63) - 1

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def encode_json(value: Any, *, field: str = "value") -> str:
    """Encode a JSON value. ``InvalidInputError`` has the path of what cannot be stored exactly.

    >>> encode_json({"a": [1, 1e16, -0.0, None]})
    '{"a":[1,1e16,-0.0,null]}'
    """
    checked = value if _is_plain(value, 1) else plain(value, field=field)
    return _encoder.encode(checked).decode()


def encode_numbers(vector: list[float]) -> str:
    """Encode a vector as JSON text, without checking its numbers.

    >>> encode_numbers([1.0, 1e-7])
    '[1.0,1e-7]'
    """
    return _encoder.encode(vector).decode()


def encode_object(value: Any, *, field: str) -> str:
    """Encode a JSON object: metadata, properties, payloads.

    >>> encode_object({"b": 1, "a": 2}, field="metadata")
    '{"b":1,"a":2}'
    """
    if not isinstance(value, dict):
        raise InvalidInputError(field, f"must be a dict, not {type(value).__name__}")
    return encode_json(value, field=field)


def encode_fields(value: Any, *, field: str) -> dict[str, str]:
    """Encode a JSON object as one text per top-level key, for stores that merge by key.

    >>> encode_fields({"b": 1, "a": [2]}, field="state")
    {'b': '1', 'a': '[2]'}
    """
    if not isinstance(value, dict):
        raise InvalidInputError(field, f"must be a dict, not {type(value).__name__}")
    checked = value if _is_plain(value, 1) else plain(value, field=field)
    return {key: _encoder.encode(item).decode() for key, item in checked.items()}


def decode_json(text: str | bytes) -> Any:
    """Decode what ``encode_json`` wrote. Raises ``CodecError`` for anything else.

    >>> decode_json('{"a":[1,1e16]}')
    {'a': [1, 1e+16]}
    """
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CodecError(f"stored JSON cannot be read: {error}") from error


def _is_plain(value: Any, depth: int) -> bool:
    """Return whether a value is plain JSON; if not, the slower full check finds the path."""
    kind = type(value)
    if kind is str:
        return bool(value.isascii()) or _is_unicode(value)
    if kind is dict:
        return depth <= MAX_DEPTH and all(
            type(key) is str and (key.isascii() or _is_unicode(key)) and _is_plain(item, depth + 1)
            for key, item in value.items()
        )
    if kind is list:
        return depth <= MAX_DEPTH and all(_is_plain(item, depth + 1) for item in value)
    if kind is int:
        return bool(_MIN_INT <= value <= _MAX_INT)
    if kind is float:
        return math.isfinite(value)
    return value is None or kind is bool


def _is_unicode(text: str) -> bool:
    return not _SURROGATE.search(text)


def plain(value: Any, *, field: str = "value") -> Any:
    """Return a checked deep copy of plain JSON types; subclasses such as enums lose their class.

    >>> plain({"a": [1, 2]})
    {'a': [1, 2]}
    """
    return _plain(value, (field,), 1)


def _plain(value: Any, path: tuple[str | int, ...], depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(str.__str__(value), path)
    if isinstance(value, (int, float)):
        return _number(value, path)
    if not isinstance(value, (dict, list)):
        raise InvalidInputError(
            spell_path(path), f"{type(value).__name__} is not JSON: {json_hint(value)}"
        )
    if depth > MAX_DEPTH:
        raise InvalidInputError(spell_path(path), f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, list):
        return [_plain(item, (*path, at), depth + 1) for at, item in enumerate(value)]
    return {_key(key, path): _plain(item, (*path, key), depth + 1) for key, item in value.items()}


def _number(value: float, path: tuple[str | int, ...]) -> int | float:
    if isinstance(value, int):
        if not _MIN_INT <= value <= _MAX_INT:
            raise InvalidInputError(spell_path(path), "integer beyond 64 bits: store it as text")
        return int(value)
    if not math.isfinite(value):
        raise InvalidInputError(spell_path(path), f"{value} is not JSON: use None or text")
    return float(value)


def _text(value: str, path: tuple[str | int, ...]) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInputError(
                spell_path(path), f"holds a lone surrogate at position {error.start}"
            ) from None
    return value


def _key(key: Any, path: tuple[str | int, ...]) -> str:
    if not isinstance(key, str):
        raise InvalidInputError(
            spell_path(path), f"has a key of type {type(key).__name__}: JSON keys are text"
        )
    return _text(str.__str__(key), (*path, "(key)"))


def spell_path(path: tuple[str | int, ...]) -> str:
    """Return the path to a part of a JSON value as text, 500 characters at most.

    >>> spell_path(("message", "rows", 0, "name"))
    'message.rows[0].name'
    """
    first, *rest = path
    spelled = str(first)
    for step in rest:
        spelled += f"[{step}]" if isinstance(step, int) else f".{step}"
    # A hostile key may contain any character; the path must still be printable.
    return spelled.encode("utf-8", "backslashreplace").decode()[:500]


def block_to_json(block: ContentBlock, *, field: str = "block") -> dict[str, Any]:
    """Return a block as an object with its ``type``; bytes become base64.

    JSON values inside it are not checked here, but by ``encode_json``.

    >>> block_to_json(TextBlock("hi"))
    {'type': 'text', 'text': 'hi'}
    """
    if type(block) is TextBlock and type(block.text) is str:
        return {"type": "text", "text": block.text}
    if isinstance(block, UnknownBlock):
        return block.raw
    if KNOWN_BLOCKS.get(getattr(block, "type", "")) is not type(block):
        raise InvalidInputError(field, f"{type(block).__name__} is not a content block")
    out: dict[str, Any] = {"type": block.type}
    for slot in dataclasses.fields(block):
        value = getattr(block, slot.name)
        if value is slot.default:
            continue
        name = f"{field}.{slot.name}"
        _check_slot(slot.name, value, name)
        if isinstance(block, ToolResultBlock) and slot.name == "content":
            value = blocks_to_json(value, field=name)
        elif isinstance(value, bytes) and not isinstance(block, DataBlock):
            value = base64.b64encode(value).decode("ascii")
        out[slot.name] = value
    return out


_TEXT_SLOTS = frozenset(
    {
        *("text", "url", "blob_ref", "media_type", "name", "id", "tool_use_id", "signature"),
        *("message", "code"),
    }
)


def _check_slot(slot: str, value: Any, name: str) -> None:
    if slot in _TEXT_SLOTS and not isinstance(value, str):
        raise InvalidInputError(name, f"must be text, not {type(value).__name__}")
    if slot == "input" and not isinstance(value, dict):
        raise InvalidInputError(name, f"must be a dict, not {type(value).__name__}")
    if slot == "is_error" and not isinstance(value, bool):
        raise InvalidInputError(name, f"must be True or False, not {type(value).__name__}")


def blocks_to_json(blocks: Sequence[ContentBlock], *, field: str) -> list[dict[str, Any]]:
    """Return blocks as objects, for ``encode_json`` to check and write.

    >>> blocks_to_json([TextBlock("hi")], field="content")
    [{'type': 'text', 'text': 'hi'}]
    """
    if not isinstance(blocks, (list, tuple)):
        raise InvalidInputError(field, f"must be a list of blocks, not {type(blocks).__name__}")
    return [block_to_json(block, field=f"{field}[{at}]") for at, block in enumerate(blocks)]


def block_from_json(raw: Any) -> ContentBlock:
    """Return the block that ``block_to_json`` wrote, or an ``UnknownBlock`` with all its data.

    >>> block_from_json({"type": "text", "text": "hi"})
    TextBlock(text='hi')
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise CodecError("a stored content block has no type")
    if raw["type"] == "text" and len(raw) == 2 and type(raw.get("text")) is str:
        return TextBlock(raw["text"])
    known = KNOWN_BLOCKS.get(raw["type"])
    slots = {key: value for key, value in raw.items() if key != "type"}
    if known is None or not slots.keys() <= known.__dataclass_fields__.keys():
        return UnknownBlock(raw)
    try:
        if known is ToolResultBlock:
            slots["content"] = blocks_from_json(slots.get("content", []))
        elif "blob_ref" in known.__dataclass_fields__ and "data" in slots:
            slots["data"] = base64.b64decode(slots["data"], validate=True)
        block: ContentBlock = known(**slots)
        for slot, value in slots.items():
            if slot != "content" and not isinstance(value, bytes):
                _check_slot(slot, value, f"{raw['type']}.{slot}")
    except (TypeError, binascii.Error, InvalidInputError) as error:
        raise CodecError(f"a stored {raw['type']} block cannot be read: {error}") from error
    return block


def blocks_from_json(raw: Any) -> list[ContentBlock]:
    """Return the blocks that ``blocks_to_json`` wrote.

    >>> blocks_from_json([{"type": "text", "text": "hi"}])
    [TextBlock(text='hi')]
    """
    if not isinstance(raw, list):
        raise CodecError("stored content is not a list of blocks")
    return [block_from_json(item) for item in raw]


def message_to_payload(message: ChatMessage, *, field: str = "message") -> dict[str, Any]:
    """Return a message as the payload of its event; the event has its id and time.

    JSON values inside it are not checked here, but by ``encode_json``.

    >>> message_to_payload(ChatMessage.user("hi"))
    {'v': 1, 'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}
    """
    if not isinstance(message, ChatMessage):
        raise InvalidInputError(
            field, f"must be a ChatMessage, not {type(message).__name__}: ChatMessage.user(text)"
        )
    payload: dict[str, Any] = {
        "v": VERSION,
        "role": message.role,
        "content": blocks_to_json(message.content, field=f"{field}.content"),
    }
    if message.name:
        payload["name"] = message.name
    if not isinstance(message.metadata, dict):
        raise InvalidInputError(
            f"{field}.metadata", f"must be a dict, not {type(message.metadata).__name__}"
        )
    if message.metadata:
        payload["metadata"] = message.metadata
    return payload


def message_from_payload(
    payload: Mapping[str, Any], *, id: str, created_at: datetime, seq: int | None = None
) -> ChatMessage:
    """Return the message in an event's payload; a plain string as ``content`` is one text block.

    So is an object in ``content`` that has only the key ``text``.

    >>> from datetime import UTC
    >>> when = datetime(2030, 1, 1, tzinfo=UTC)
    >>> message_from_payload({"role": "user", "content": "hi"}, id="m1", created_at=when).text
    'hi'
    """
    version = payload.get("v", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise CodecError(
            f"a message has format version {version!r} and this code reads up to {VERSION}: "
            "upgrade holdfast"
        )
    role, content = payload.get("role"), payload.get("content")
    if role not in ROLES:
        raise CodecError(f"a stored message has the role {role!r}")
    name, metadata = payload.get("name", ""), payload.get("metadata", {})
    if not isinstance(name, str) or not isinstance(metadata, dict):
        raise CodecError(
            "a stored message has a name that is not text, or metadata that is not a dict"
        )
    if isinstance(content, str):
        content = [{"text": content}]
    elif not isinstance(content, list):
        raise CodecError("stored content is not a list of blocks")
    # A block may have text and no type if the caller did not use ``Event.of_message``.
    blocks = [
        TextBlock(block["text"]) if _is_bare_text(block) else block_from_json(block)
        for block in content
    ]
    return stored_message(role, blocks, name, metadata, id, created_at, seq)


def _is_bare_text(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"text"} and isinstance(block["text"], str)


def encode_message(message: ChatMessage) -> str:
    """Encode a whole message with id and time, for stores that keep messages outside of events.

    >>> decode_message(encode_message(ChatMessage.user("hi"))).text
    'hi'
    """
    return encode_json(
        message_to_payload(message)
        | {"id": message.id, "created_at": message.created_at.isoformat()},
        field="message",
    )


def decode_message(text: str | bytes, *, seq: int | None = None) -> ChatMessage:
    """Decode the message that ``encode_message`` wrote.

    >>> decode_message(encode_message(ChatMessage.user("hi"))).role
    'user'
    """
    payload = decode_json(text)
    if not isinstance(payload, dict):
        raise CodecError("a stored message is not a JSON object")
    try:
        created_at = check_time("created_at", datetime.fromisoformat(payload["created_at"]))
        key = check_id("id", payload["id"])
        return message_from_payload(payload, id=key, created_at=created_at, seq=seq)
    except (KeyError, TypeError, ValueError) as error:
        raise CodecError(f"a stored message cannot be read: {error}") from error
