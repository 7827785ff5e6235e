"""The text of an event that recall searches, built by one function per event type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from holdfast.values.codec import blocks_from_json
from holdfast.values.content import text_of
from holdfast.values.errors import CodecError
from holdfast.values.sealed import blind_words


def event_text(type: str, payload: dict[str, Any]) -> str:
    """Return the text to index for an event of ``type``; a message begins with the speaker's name.

    >>> event_text("message", {"role": "user", "name": "Ana", "content": "low tide"})
    'Ana: low tide'
    >>> event_text("decision", {"use": "postgres", "because": ["durable"]})
    'use: postgres because: durable'
    """
    if (blind := blind_words(payload)) is not None:
        return f"{blind.text} {blind.said}"
    return _BY_TYPE.get(type, _all_words)(payload)


def message_speaker(payload: dict[str, Any]) -> str:
    """Return who said a message: the name, else the role.

    >>> message_speaker({"role": "user", "content": "low tide"})
    'user'
    """
    return str(payload.get("name") or payload.get("role", ""))


def message_text(payload: dict[str, Any]) -> str:
    """Return the text of a message, without the speaker.

    >>> message_text({"role": "user", "content": "low tide"})
    'low tide'
    """
    content = payload.get("content", "")
    if isinstance(content, str):
        return content
    try:
        return text_of(blocks_from_json(content))
    except CodecError:
        return _all_words({"content": content})


def _message(payload: dict[str, Any]) -> str:
    return f"{message_speaker(payload)}: {message_text(payload)}"


def _tool_call(payload: dict[str, Any]) -> str:
    rest = {key: value for key, value in payload.items() if key not in {"name", "id"}}
    return f"{payload.get('name', '')}: {_all_words(rest)}"


def _all_words(payload: dict[str, Any]) -> str:
    return " ".join(_words(payload))


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{key}:"
            yield from _words(item)
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif value is not None:
        yield str(value)


_BY_TYPE: dict[str, Callable[[dict[str, Any]], str]] = {
    "message": _message,
    "tool_call": _tool_call,
    "tool_result": _tool_call,
    "decision": _all_words,
    "observation": _all_words,
}
