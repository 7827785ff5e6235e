"""Hints in errors: how to convert a value that JSON cannot represent."""

from __future__ import annotations

import dataclasses
import inspect
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

_HINTS = {
    tuple: "use a list",
    set: "use a list",
    frozenset: "use a list",
    bytes: "store it with blobs.store(…), or use text",
    datetime: "use .isoformat()",
    date: "use .isoformat()",
    UUID: "use str(…)",
    Decimal: "use str(…), or float(…)",
}


def json_hint(value: object) -> str:
    """Return a hint how to convert a value that JSON cannot represent.

    >>> json_hint((1, 2))
    'use a list'
    """
    if hint := _HINTS.get(type(value)):
        return hint
    if inspect.iscoroutine(value):
        return "await it"
    if hasattr(value, "tolist"):
        # Arrays, and the numbers in them.
        return "use .tolist()"
    if hasattr(value, "model_dump"):
        return 'use .model_dump(mode="json")'
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "use dataclasses.asdict(…)"
    return "use dict, list, str, int, float, bool or None"
