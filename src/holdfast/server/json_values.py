"""Converts JSON values to and from ``google.protobuf.Value`` and ``Struct``.

protobuf's own functions take four times as long, and block the event loop for all requests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from holdfast.values.errors import InvalidInputError

MAX_VALUES = 10_000
"""Maximum JSON values in a request: converting them blocks the event loop for all requests."""

_EXACT = 1 << 53
"""Numbers are sent as doubles: a whole number beyond this is sent as a string of its digits."""


def object_from_wire(value: Struct | Value, *, field: str) -> Any:
    """Convert a protobuf value to a JSON value; whole numbers become ints.

    >>> object_from_wire(object_to_wire({"page": 2}), field="metadata")
    {'page': 2}
    """
    check_values([value], field=field)
    try:
        if isinstance(value, Struct):
            return {key: _from_wire(one) for key, one in value.fields.items()}
        return _from_wire(value)
    except ValueError:
        raise InvalidInputError(
            field, "must not contain NaN or infinity: they are not JSON"
        ) from None


def check_values(roots: Sequence[Struct | Value], *, field: str) -> None:
    """Raise if a request has more than ``MAX_VALUES`` JSON values, before converting any of them.

    >>> check_values([object_to_wire({"page": 2})], field="metadata")
    """
    left, stack = MAX_VALUES, list[Any](roots)
    while stack:
        one = stack.pop()
        if isinstance(one, Value):
            kind = one.WhichOneof("kind")
            if kind not in {"struct_value", "list_value"}:
                continue
            one = getattr(one, kind)
        inner = one.fields if isinstance(one, Struct) else one.values
        left -= len(inner)
        if left < 0:
            raise InvalidInputError(field, f"has more than {MAX_VALUES} JSON values")
        stack += inner.values() if isinstance(one, Struct) else inner


def _from_wire(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        return _number(value.number_value)
    if kind == "struct_value":
        return {key: _from_wire(one) for key, one in value.struct_value.fields.items()}
    if kind == "list_value":
        return [_from_wire(one) for one in value.list_value.values]
    return None if kind in {None, "null_value"} else getattr(value, kind)


def _number(value: float) -> int | float:
    if not math.isfinite(value):
        raise ValueError(value)
    # Minus zero is kept as a float: there is no such int.
    whole = value.is_integer() and abs(value) <= _EXACT and (value or math.copysign(1, value) > 0)
    return int(value) if whole else value


def object_to_wire(value: Mapping[str, Any]) -> Struct:
    """Convert a JSON object to a protobuf ``Struct``.

    >>> object_to_wire({"page": 2})["page"]
    2.0
    """
    found = Struct()
    for key, one in value.items():
        _put(one, found.fields[key])
    return found


def value_to_wire(value: Any) -> Value:
    """Convert any JSON value to a protobuf ``Value``.

    >>> value_to_wire([1, "a"]).list_value.values[1].string_value
    'a'
    """
    found = Value()
    _put(value, found)
    return found


def _put(value: Any, target: Value) -> None:
    """Write a JSON value into its target in a message."""
    if isinstance(value, str):
        target.string_value = value
    elif value is None:
        target.null_value = NULL_VALUE
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int) and abs(value) > _EXACT:
        target.string_value = str(value)
    elif isinstance(value, (int, float)):
        target.number_value = value
    elif isinstance(value, Mapping):
        # Without this an empty object would be no value at all.
        target.struct_value.SetInParent()
        for key, one in value.items():
            _put(one, target.struct_value.fields[key])
    else:
        target.list_value.SetInParent()
        add = target.list_value.values.add
        for one in value:
            _put(one, add())
