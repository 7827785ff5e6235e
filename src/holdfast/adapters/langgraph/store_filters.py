"""Converts a filter of LangGraph's stores to the filter language of Holdfast.

In LangGraph, a dict without operators compares the keys that it names, a list must equal the whole
list, and a missing key equals ``None``. ``docs/how-to/langgraph.md`` lists the differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.values.errors import InvalidInputError
from holdfast.values.filters import MAX_DEPTH, escape

_ORDERS = ("$gt", "$gte", "$lt", "$lte")


def to_filter(filter: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a filter over the values of items.

    >>> to_filter({"kind": "note", "size": {"$gt": 3}})
    {'$and': [{'kind': {'$equals': 'note'}}, {'size': {'$gt': 3}}]}
    """
    return {"$and": _keys("filter", "", filter, 1)} if filter else None


def _keys(at: str, path: str, wanted: Any, depth: int) -> list[dict[str, Any]]:
    if not isinstance(wanted, Mapping):
        raise InvalidInputError(at, f"must be a dict, not {type(wanted).__name__}")
    if depth > MAX_DEPTH:
        raise InvalidInputError(at, f"nested deeper than {MAX_DEPTH} levels")
    found: list[dict[str, Any]] = []
    for key, value in wanted.items():
        if not isinstance(key, str):
            raise InvalidInputError(at, f"has a key of type {type(key).__name__}: keys are text")
        inside = f"{path}.{escape(key)}" if path else escape(key)
        found += _condition(f"{at}.{key}", inside, value, depth)
    return found


def _condition(at: str, path: str, value: Any, depth: int) -> list[dict[str, Any]]:
    if not isinstance(value, Mapping):
        return [_equal(path, value)]
    if any(isinstance(key, str) and key.startswith("$") for key in value):
        return [_operator(f"{at}.{name}", path, name, operand) for name, operand in value.items()]
    if not value:
        raise InvalidInputError(at, "must not be empty: name a key of the object, or use $eq")
    return _keys(at, path, value, depth + 1)


def _operator(at: str, path: str, name: Any, operand: Any) -> dict[str, Any]:
    if name == "$eq":
        return _equal(path, operand)
    if name == "$ne":
        return {"$not": _equal(path, operand)}
    if name in _ORDERS:
        return {path: {name: _number(operand)}}
    raise InvalidInputError(at, f"unknown operator: known are $eq, $ne, {', '.join(_ORDERS)}")


def _equal(path: str, value: Any) -> dict[str, Any]:
    equal = {path: {"$equals": value}}
    return {"$or": [equal, {path: {"$exists": False}}]} if value is None else equal


def _number(operand: Any) -> Any:
    """Return a text that contains a number as that number, as LangGraph does."""
    if not isinstance(operand, str):
        return operand
    try:
        return int(operand)
    except ValueError:
        try:
            return float(operand)
        except ValueError:
            return operand
