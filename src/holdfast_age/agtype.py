"""Values as AGE stores them: agtype, which is JSON with vertices, edges, paths and exact numerics.

A value is written as the codec's JSON with U+0000 escaped (``escape.py``). When it is read, a
vertex is a dict with ``id``, ``label`` and ``properties``, an edge has ``start_id`` and ``end_id``
too, a path is a list of them, and a numeric is a ``Decimal``. The store's own properties of a
vertex or an edge are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from holdfast.engines.postgres.escape import escape, unescape
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import CodecError

_ESCAPED = re.compile(r"\\u000[01]")
_PART = re.compile(r'::[a-z]+|[{}\[\]:,]|"(?:[^"\\]|\\.)*"|[^\s{}\[\]:,"]+|\S', re.DOTALL)
_MAX_DEPTH = 200

EXACT, NAMES, SUBJECT = "_holdfast", "_holdfast_names", "_holdfast_subject"
"""The store's own properties: the exact JSON, the names to find an entity by, and the subject."""


def to_agtype(value: Any, *, field: str = "value") -> str:
    r"""Return a JSON value as the text of an agtype.

    >>> to_agtype({"a": [1, 1e16]})
    '{"a":[1,1e16]}'
    """
    text = encode_json(value, field=field)
    return encode_json(_each_text(value, escape)) if _ESCAPED.search(text) else text


def from_agtype(text: str | None) -> Any:
    """Return the value of an agtype that the server sent as text.

    >>> from_agtype('{"id": 7, "label": "Entity", "properties": {"n": 1.5::numeric}}::vertex')
    {'id': 7, 'label': 'Entity', 'properties': {'n': Decimal('1.5')}}
    """
    if text is None:
        return None
    if "::" in text or "Infinity" in text or "NaN" in text:
        value = _Reader(text).whole()
    else:
        value = decode_json(text)
    return _each_text(value, unescape) if _ESCAPED.search(text) else value


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal with the same types: 1, 1.0 and True are three values.

    >>> same({"a": [1]}, {"a": [1]}), same(1, True)
    (True, False)
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _each_text(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _each_text(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    return value


class _Reader:
    """Parses agtype that is not plain JSON, token by token."""

    def __init__(self, text: str) -> None:
        self._parts = [found[0].strip() for found in _PART.finditer(text)]
        self._parts.append("")
        self._at = 0

    def whole(self) -> Any:
        """Return the value of the whole text."""
        value = self._value(1)
        self._take("")
        return value

    def _value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise CodecError("an agtype is nested too deeply to be read")
        part = self._take()
        match part:
            case "{":
                value: Any = dict(self._pairs(depth))
            case "[":
                value = list(self._items(depth))
            case _:
                value = _scalar(part)
        while self._parts[self._at].startswith("::"):
            value = _annotated(value, part, self._take())
        return value

    def _pairs(self, depth: int) -> Iterator[tuple[str, Any]]:
        for _ in self._until("}"):
            key = decode_json(self._take())
            self._take(":")
            yield key, self._value(depth + 1)

    def _items(self, depth: int) -> Iterator[Any]:
        for _ in self._until("]"):
            yield self._value(depth + 1)

    def _until(self, end: str) -> Iterator[None]:
        """Yield once for each item of a list or object, up to its end."""
        if self._parts[self._at] == end:
            self._take()
            return
        yield
        while self._take(",", end) == ",":
            yield

    def _take(self, *wanted: str) -> str:
        part = self._parts[self._at]
        if (wanted and part not in wanted) or (not wanted and not part):
            raise CodecError(f"an agtype has {part[:40]!r} where it should have {wanted or 'more'}")
        self._at += 1
        return part


def _scalar(part: str) -> Any:
    if part.startswith('"') or part in {"true", "false", "null"}:
        return decode_json(part)
    try:
        return int(part) if part.lstrip("-").isdecimal() else float(part)
    except ValueError:
        raise CodecError(f"an agtype has {part[:40]!r} where it should have a value") from None


def _annotated(value: Any, part: str, kind: str) -> Any:
    """Return a value that has a type annotation; ``part`` is the text of a number."""
    if kind == "::numeric" and isinstance(value, (int, float)):
        return Decimal(part)
    if kind in {"::vertex", "::edge"} and isinstance(value, dict):
        properties = value.get("properties")
        if isinstance(properties, dict):
            own = {EXACT, NAMES, SUBJECT}
            value["properties"] = {k: v for k, v in properties.items() if k not in own}
    return value
