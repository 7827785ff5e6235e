"""Filters over the payload of an event: only by the scalars at its top level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from holdfast.values.errors import InvalidInputError
from holdfast.values.filters import (
    And,
    Compare,
    Equals,
    Exists,
    Filter,
    Not,
    OneOf,
    Or,
    Path,
    Scalar,
    escape,
    parse,
    spell,
)

MAX_TEXT_BYTES = 256
"""Filters ignore a longer text in a payload."""


def filterable(payload: Any) -> dict[str, Scalar]:
    """Return the keys of a payload that a filter can compare: those with scalar values.

    >>> filterable({"use": "postgres", "cost": 3, "tags": ["db"], "why": "x" * 257})
    {'use': 'postgres', 'cost': 3}
    """
    if not isinstance(payload, Mapping):
        return {}
    return {key: value for key, value in payload.items() if _is_filterable(value)}


def parse_where(where: Mapping[str, Any] | None, *, field: str = "where") -> Filter | None:
    """Parse a filter over payloads. Returns ``None`` if it matches everything.

    >>> parse_where({"use": "postgres"})
    OneOf(path=('use',), values=('postgres',))
    >>> parse_where({})
    """
    wanted = parse(where, field=field)
    _check(wanted, field)
    return None if wanted == And(()) else wanted


def _is_filterable(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_TEXT_BYTES and len(value.encode()) <= MAX_TEXT_BYTES
    return not isinstance(value, (Mapping, list))


def _check(wanted: Filter, field: str) -> None:
    match wanted:
        case OneOf(path, values):
            _check_condition(path, values, field)
        case Compare(path, _, value):
            _check_condition(path, (value,), field)
        case Exists(path):
            _check_condition(path, (), field)
        case Equals(path, value):
            _check_condition(path, (value,), field)
        case And(parts) | Or(parts):
            for part in parts:
                _check(part, field)
        case Not(part):
            _check(part, field)
        case _:
            assert_never(wanted)


def _check_condition(path: Path, values: Iterable[Any], field: str) -> None:
    at = f"{field}.{spell('.'.join(map(escape, path)))}"
    if len(path) > 1:
        raise InvalidInputError(
            at,
            "is a nested key: an event is filtered by the text, numbers, bools and nulls at the "
            f"top level of its payload; a key with a dot in it is written {escape('.'.join(path))}",
        )
    for value in values:
        if isinstance(value, (dict, list)):
            raise InvalidInputError(
                at, "must be text, a number, a bool or None: an event is not filtered by others"
            )
        if isinstance(value, str) and not _is_filterable(value):
            raise InvalidInputError(
                at,
                f"has {len(value.encode())} bytes: text in a payload is filtered up to "
                f"{MAX_TEXT_BYTES} bytes, and a longer one is found by recall",
            )
