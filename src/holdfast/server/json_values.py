"""JSON values as the wire has them: ``google.protobuf.Value`` and ``Struct``.

The functions of protobuf that do this take four times as long, and time on the event loop is
everybody's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from holdfast.values.errors import InvalidInputError

MAX_VALUES = 10_000
"""How many JSON values a request has at most: converting them takes the time of everybody."""

_EXACT = 1 << 53
"""Numbers travel as doubles: a whole number beyond this is sent as text, digit by digit."""


def object_from_wire(value: Struct | Value, *, field: str) -> Any:
    """A JSON value of the wire; whole numbers are ints again.

    >>> object_from_wire(object_to_wire({"page": 2}), field="metadata")
    {'page': 2}
    """
    check_values([value], field=field)
    try:
        if isinstance(value, Struct):
            return {key: _from_wire(one) for key, one in value.fields.items()}
        return _from_wire(value)
    except ValueError:
        raise InvalidInputError(field, "holds NaN or infinity, which is not JSON") from None


def check_values(roots: Sequence[Struct | Value], *, field: str) -> None:
    """Refuse more JSON values than one request may have, before any of them is converted.

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
    # Minus zero has no integer.
    whole = value.is_integer() and abs(value) <= _EXACT and (value or math.copysign(1, value) > 0)
    return int(value) if whole else value


def object_to_wire(value: Mapping[str, Any]) -> Struct:
    """A JSON object for the wire.

    >>> object_to_wire({"page": 2})["page"]
    2.0
    """
    found = Struct()
    for key, one in value.items():
        _put(one, found.fields[key])
    return found


def value_to_wire(value: Any) -> Value:
    """Any JSON value for the wire.

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
        # An empty object is an object all the same.
        target.struct_value.SetInParent()
        for key, one in value.items():
            _put(one, target.struct_value.fields[key])
    else:
        target.list_value.SetInParent()
        add = target.list_value.values.add
        for one in value:
            _put(one, add())
