"""The span that submitted a task, kept in its stored metadata under a reserved key."""

from __future__ import annotations

import re
from typing import Any

from holdfast.values.codec import decode_json, encode_json, encode_object
from holdfast.values.errors import InvalidInputError

TRACE_KEY = "holdfast.traceparent"
"""The key in stored metadata; agents and clients never see it."""

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def check_traceparent(text: object) -> str:
    """Check a ``traceparent`` of version 00 of W3C Trace Context: 55 characters.

    >>> check_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")[:7]
    '00-0af7'
    """
    if not isinstance(text, str) or not _TRACEPARENT.fullmatch(text):
        raise InvalidInputError(
            "traceparent", "must be 00-TRACE-SPAN-FLAGS with 32, 16 and 2 digits of 0-9 and a-f"
        )
    return text


def encode_untraced(metadata: object, *, field: str = "metadata") -> str:
    """Check a caller's metadata and return it as JSON text; the key of the span is refused.

    >>> encode_untraced({"channel": "mail"})
    '{"channel":"mail"}'
    """
    if metadata is None:
        return "{}"
    text = encode_object(metadata, field=field)
    if isinstance(metadata, dict) and TRACE_KEY in metadata:
        raise InvalidInputError(f"{field}.{TRACE_KEY}", "is a reserved key: use another one")
    return text


def with_traceparent(metadata: str, traceparent: str) -> str:
    """Return stored metadata with the span that submitted the task.

    >>> with_traceparent("{}", "00-" + "a" * 32 + "-" + "b" * 16 + "-01")[:24]
    '{"holdfast.traceparent":'
    """
    return encode_json(decode_json(metadata) | {TRACE_KEY: check_traceparent(traceparent)})


def take_traceparent(metadata: dict[str, Any]) -> str:
    """Remove the span from loaded metadata and return it; empty if it has none that is valid.

    >>> take_traceparent({TRACE_KEY: "odd"})
    ''
    """
    found = metadata.pop(TRACE_KEY, "")
    return found if isinstance(found, str) and _TRACEPARENT.fullmatch(found) else ""
