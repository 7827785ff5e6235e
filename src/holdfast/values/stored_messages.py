"""Decodes stored messages, a page at a time.

msgspec decodes a body in one call, strictly: it accepts only known fields of the message and its
blocks. What it refuses (a block or a field of another version, media, text instead of blocks,
damage) is decoded by ``message_from_payload``, which keeps all data or raises the error.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from holdfast.values.codec import decode_json, message_from_payload
from holdfast.values.content import (
    ChatMessage,
    ContentBlock,
    DataBlock,
    ErrorBlock,
    ReasoningBlock,
    Role,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    stored_message,
)
from holdfast.values.errors import CodecError

MessageRow: TypeAlias = tuple[str | bytes, str, datetime, int]
"""A stored message: its body, its id, its time, and its seq."""


class _Part(msgspec.Struct, tag_field="type", forbid_unknown_fields=True, gc=False):
    """A block as it is stored. The garbage collector skips it: decoded JSON has no cycles."""


class _Text(_Part, tag="text"):
    text: str

    def block(self) -> ContentBlock:
        return TextBlock(self.text)


class _Reasoning(_Part, tag="reasoning"):
    text: str
    signature: str = ""

    def block(self) -> ContentBlock:
        return ReasoningBlock(self.text, self.signature)


class _ToolUse(_Part, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any] = {}

    def block(self) -> ContentBlock:
        return ToolUseBlock(self.id, self.name, self.input)


class _ToolResult(_Part, tag="tool_result"):
    tool_use_id: str
    content: list[_Block] = []
    is_error: bool = False

    def block(self) -> ContentBlock:
        content = [part.block() for part in self.content]
        return ToolResultBlock(self.tool_use_id, content, self.is_error)


class _Data(_Part, tag="data"):
    data: Any

    def block(self) -> ContentBlock:
        return DataBlock(self.data)


class _Error(_Part, tag="error"):
    message: str
    code: str = ""

    def block(self) -> ContentBlock:
        return ErrorBlock(self.message, self.code)


_Block: TypeAlias = _Text | _Reasoning | _ToolUse | _ToolResult | _Data | _Error


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: Role
    content: list[_Block]
    v: Literal[1] = 1
    name: str = ""
    metadata: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Message).decode
_make = object.__new__
_put_text = vars(TextBlock)["text"].__set__


def messages_from_rows(
    rows: Iterable[tuple[str | bytes, str, datetime, int | None]],
) -> list[ChatMessage]:
    """Return the messages in stored rows. Raises ``CodecError`` at the first unreadable one.

    >>> from datetime import UTC
    >>> body = '{"v":1,"role":"user","content":[{"type":"text","text":"hi"}]}'
    >>> [message] = messages_from_rows([(body, "m1", datetime(2030, 1, 1, tzinfo=UTC), 7)])
    >>> message.text, message.seq
    ('hi', 7)
    """
    found: list[ChatMessage] = []
    for body, key, when, seq in rows:
        try:
            read = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found.append(_read_slowly(body, key, when, seq))
            continue
        content: list[ContentBlock] = []
        for part in read.content:
            if type(part) is _Text:
                # The fast path of most blocks: the constructor of a frozen dataclass takes twice as
                # long.
                block = _make(TextBlock)
                _put_text(block, part.text)
                content.append(block)
            else:
                content.append(part.block())
        found.append(stored_message(read.role, content, read.name, read.metadata, key, when, seq))
    return found


def message_from_body(
    body: str | bytes, *, id: str, created_at: datetime, seq: int | None = None
) -> ChatMessage:
    """Return the message in the stored payload of an event.

    >>> from datetime import UTC
    >>> body = '{"v":1,"role":"user","content":[{"type":"text","text":"hi"}]}'
    >>> message_from_body(body, id="m1", created_at=datetime(2030, 1, 1, tzinfo=UTC)).text
    'hi'
    """
    return messages_from_rows(((body, id, created_at, seq),))[0]


def _read_slowly(body: str | bytes, id: str, created_at: datetime, seq: int | None) -> ChatMessage:
    payload = decode_json(body)
    if not isinstance(payload, dict):
        raise CodecError("a stored message is not a JSON object")
    return message_from_payload(payload, id=id, created_at=created_at, seq=seq)
