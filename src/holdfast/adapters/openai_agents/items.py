"""Converts items of the OpenAI Agents SDK to the messages that they are stored as, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from holdfast.values.content import (
    ChatMessage,
    ContentBlock,
    Role,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from holdfast.values.errors import InvalidInputError

RAW = "openai.item"
"""The metadata key of a message under which the complete item is stored."""

MOST_TEXT = 100_000
"""How many characters of an item are also stored as text of its message, for recall."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
}


def to_message(field: str, item: object) -> ChatMessage:
    """Return the message of an item. Errors name ``field``.

    A plain text of a user, an assistant or the system becomes a plain message. Any other item is
    stored in the metadata, and its text also in blocks, so that recall finds it.

    >>> to_message("items[0]", {"role": "user", "content": "hello"}).text
    'hello'
    """
    raw = _plain(field, item)
    role, content = raw.get("role"), raw.get("content")
    if raw.keys() == {"role", "content"} and isinstance(content, str) and role != "developer":
        known = _ROLES.get(role) if isinstance(role, str) else None
        if known is not None and known != "tool":
            return ChatMessage(known, [TextBlock(content)])
    role, blocks = _blocks(raw)
    return ChatMessage(role, blocks, metadata={RAW: raw})


def to_item(message: ChatMessage) -> dict[str, Any]:
    """Return the item of a message, equal to the item that the message was made from.

    >>> to_item(ChatMessage.user("hello"))
    {'role': 'user', 'content': 'hello'}
    """
    if RAW in message.metadata:
        return cast("dict[str, Any]", message.metadata[RAW])
    return {"role": str(message.role), "content": message.text}


def _plain(field: str, item: object) -> dict[str, Any]:
    dump = getattr(item, "model_dump", None)
    raw = dump(mode="json", exclude_unset=True) if callable(dump) else item
    if not isinstance(raw, Mapping):
        raise InvalidInputError(
            field, f"must be a dict or a Pydantic model, not {type(item).__name__}"
        )
    return dict(raw)


def _blocks(raw: Mapping[str, Any]) -> tuple[Role, list[ContentBlock]]:
    """Return the role of an item, and the part of its content that blocks can represent."""
    kind, call = raw.get("type"), raw.get("call_id")
    name, output = raw.get("name"), raw.get("output")
    if (
        kind == "function_call"
        and isinstance(call, str)
        and call
        and isinstance(name, str)
        and name
    ):
        arguments = raw.get("arguments")
        return "assistant", [ToolUseBlock(call, name, {"arguments": arguments})]
    if isinstance(kind, str) and kind.endswith("_output") and isinstance(call, str) and call:
        text = output if isinstance(output, str) else ""
        return "tool", [ToolResultBlock(call, [TextBlock(text[:MOST_TEXT])])]
    role = raw.get("role")
    known = _ROLES.get(role) if isinstance(role, str) else None
    return known or "assistant", [TextBlock(text) for text in _texts(raw)]


def _texts(raw: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key in ("content", "summary"):
        parts = raw.get(key)
        for part in parts if isinstance(parts, list) else [parts]:
            text = part.get("text") if isinstance(part, Mapping) else part
            left = MOST_TEXT - sum(map(len, found))
            if isinstance(text, str) and text and left > 0:
                found.append(text[:left])
    return found
