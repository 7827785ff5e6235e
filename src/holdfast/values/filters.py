"""The filter language over metadata: parsed once, and the same on every engine.

::

    {"kind": "note"}                      equal
    {"kind": ["note", "mail"]}            any of
    {"price": {"$gte": 10, "$lt": 20}}    operators; all must hold
    {"author.name": "Ravi"}               a nested key
    {"tags": {"$equals": ["a", "b"]}}     the whole value, a list or an object too
    {"$or": [{"a": 1}, {"b": 1}]}         of filters: $and, $or, $not

``parse`` returns a tree of seven kinds of node for an engine to compile, and ``matches`` defines
its meaning. ``docs/reference/filters.md`` holds the truth table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any, Literal, TypeAlias, assert_never

from holdfast.values import codec
from holdfast.values.checks import check_text
from holdfast.values.errors import InvalidInputError

MAX_DEPTH = 64

Scalar: TypeAlias = str | int | float | bool | None
Path: TypeAlias = tuple[str, ...]
Order: TypeAlias = Literal["$gt", "$gte", "$lt", "$lte"]

_ORDERS: dict[Order, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_OPERATORS = ("$eq", "$ne", *_ORDERS, "$in", "$nin", "$exists", "$equals", "$not")
_CONNECTIVES = ("$and", "$or", "$not")
_PATH_PARTS = re.compile(r"\.|\\.?|[^.\\]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value at a path, or an element of the list there, equals one of ``values``.

    >>> matches(OneOf(("kind",), ("note", "mail")), {"kind": "mail"})
    True
    """

    path: Path
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """The value at a path, or an element of the list there, is less or greater than ``value``.

    >>> matches(Compare(("price",), "$gt", 10), {"price": 12.5})
    True
    """

    path: Path
    order: Order
    value: str | int | float


@dataclass(frozen=True, slots=True)
class Exists:
    """There is a value at a path; null counts as a value.

    >>> matches(Exists(("price",)), {"price": None})
    True
    """

    path: Path


@dataclass(frozen=True, slots=True)
class Equals:
    """The value at a path as a whole equals ``value``, which is any JSON.

    >>> matches(Equals(("tags",), ["a", "b"]), {"tags": ["a", "b"]})
    True
    """

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; without parts it always holds.

    >>> matches(And(()), {})
    True
    """

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds; without parts it never holds.

    >>> matches(Or(()), {})
    False
    """

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold.

    >>> matches(Not(Exists(("price",))), {})
    True
    """

    part: Filter


Filter: TypeAlias = OneOf | Compare | Exists | Equals | And | Or | Not


def parse(filter: Mapping[str, Any] | None, *, field: str = "filter") -> Filter:
    """Parse a filter. Raises ``InvalidInputError`` with the path of what is wrong in it.

    ``None`` and ``{}`` match everything.

    >>> parse({"price": {"$lt": 20}})
    Compare(path=('price',), order='$lt', value=20)
    """
    return And(()) if filter is None else _filter(filter, field, 1)


def escape(key: str) -> str:
    r"""Escape a metadata key for a filter, so that no dot or dollar in it is special.

    >>> print(escape("v1.2"))
    v1\.2
    >>> parse({escape("v1.2"): True}) == OneOf(("v1.2",), (True,))
    True
    """
    dotless = key.replace("\\", "\\\\").replace(".", "\\.")
    return f"\\{dotless}" if dotless.startswith("$") else dotless


def matches(filter: Filter, metadata: Mapping[str, Any]) -> bool:
    """Return whether metadata passes a parsed filter.

    >>> matches(parse({"author.name": "Ravi"}), {"author": {"name": "Ravi"}})
    True
    """
    match filter:
        case OneOf(path, values):
            wanted = [_comparable(value) for value in values]
            return any(_comparable(value) in wanted for value in _candidates(metadata, path))
        case Compare(path, order, value):
            kind, bound = _comparable(value)
            return any(
                kind == found_kind and _ORDERS[order](found, bound)
                for found_kind, found in map(_comparable, _candidates(metadata, path))
            )
        case Exists(path):
            return _find(metadata, path) is not _MISSING
        case Equals(path, value):
            found = _find(metadata, path)
            return found is not _MISSING and _same(found, value)
        case And(parts):
            return all(matches(part, metadata) for part in parts)
        case Or(parts):
            return any(matches(part, metadata) for part in parts)
        case Not(part):
            return not matches(part, metadata)
        case _:
            assert_never(filter)


_MISSING: Any = object()


def _find(metadata: Mapping[str, Any], path: Path) -> Any:
    found: Any = metadata
    for key in path:
        # A path does not go into a list: its elements have no names.
        if not isinstance(found, Mapping) or key not in found:
            return _MISSING
        found = found[key]
    return found


def _candidates(metadata: Mapping[str, Any], path: Path) -> list[Any]:
    found = _find(metadata, path)
    if found is _MISSING:
        return []
    return found if isinstance(found, list) else [found]


def _same(found: Any, value: Any) -> bool:
    if isinstance(found, list) and isinstance(value, list):
        return len(found) == len(value) and all(map(_same, found, value))
    if isinstance(found, Mapping) and isinstance(value, Mapping):
        return found.keys() == value.keys() and all(
            _same(found[key], part) for key, part in value.items()
        )
    kind, scalar = _comparable(value)
    return kind != "other" and _comparable(found) == (kind, scalar)


def _comparable(value: Any) -> tuple[str, Any]:
    """Return a value with its kind: values of two kinds are never equal, less or greater."""
    match value:
        case bool():
            return "bool", value
        case int():
            return "number", value
        case float():
            # Compared by its JSON text, as in a database: 2.0**60 is written 1.152921504606847e18,
            # which is not the integer 2**60.
            return "number", int(Decimal(repr(value))) if abs(value) >= 2**53 else value
        case str():
            return "text", value
        case None:
            return "null", value
        case _:
            # An object, or a list in a list, equals no value that a filter can contain.
            return "other", _MISSING


def _filter(raw: Any, at: str, depth: int) -> Filter:
    if not isinstance(raw, Mapping):
        raise InvalidInputError(at, f"must be a dict, not {type(raw).__name__}")
    if depth > MAX_DEPTH:
        raise InvalidInputError(at, f"nested deeper than {MAX_DEPTH} levels")
    parts: list[Filter] = []
    for key, operand in raw.items():
        name = _key(key, at)
        here = f"{at}.{spell(name)}"
        if name.startswith("$"):
            parts.append(_connective(name, operand, here, depth))
        else:
            parts.append(_condition(_path(name, here), operand, here, depth))
    return _all(parts)


def _key(key: Any, at: str) -> str:
    if not isinstance(key, str):
        raise InvalidInputError(at, f"has a key of type {type(key).__name__}: keys are text")
    return check_text(f"{at}.(key)", key)


def spell(key: str) -> str:
    """Return a key as errors show it: printable, 100 characters at most.

    >>> spell("price")
    'price'
    """
    # A key may have any characters and any length; the path must still be printable.
    return (key if key.isprintable() else key.encode("unicode_escape").decode())[:100]


def _connective(name: str, operand: Any, at: str, depth: int) -> Filter:
    match name:
        case "$not":
            return Not(_filter(operand, at, depth + 1))
        case "$and" | "$or":
            parts = tuple(
                _filter(part, f"{at}[{index}]", depth + 1)
                for index, part in enumerate(_list(operand, at, "filters"))
            )
            return And(parts) if name == "$and" else Or(parts)
        case _:
            if name in _OPERATORS:
                raise InvalidInputError(
                    at, f"must be under a key: write {{'key': {{{name!r}: …}}}} instead"
                )
            raise InvalidInputError(
                at,
                f"unknown operator: filters are combined with {', '.join(_CONNECTIVES)}; "
                "a key that starts with a dollar is written with a backslash before it",
            )


def _path(name: str, at: str) -> Path:
    keys: list[list[str]] = [[]]
    for part in _PATH_PARTS.findall(name):
        if part == ".":
            keys.append([])
        elif not part.startswith("\\"):
            keys[-1].append(part)
        elif part[1:] in {".", "$", "\\"}:
            keys[-1].append(part[1:])
        else:
            raise InvalidInputError(at, "a backslash must be before a dot, a dollar or a backslash")
    return tuple(map("".join, keys))


def _condition(path: Path, operand: Any, at: str, depth: int) -> Filter:
    if isinstance(operand, Mapping):
        return _operators(path, operand, at, depth)
    if isinstance(operand, (list, tuple)):
        return OneOf(path, _scalars(operand, at))
    return OneOf(path, (_scalar(operand, at),))


def _operators(path: Path, operators: Mapping[Any, Any], at: str, depth: int) -> Filter:
    if depth > MAX_DEPTH:
        raise InvalidInputError(at, f"nested deeper than {MAX_DEPTH} levels")
    if not operators:
        raise InvalidInputError(at, f"needs an operator: {', '.join(_OPERATORS)}")
    return _all(
        [
            _operator(path, name, operand, f"{at}.{spell(name)}", depth)
            for name, operand in ((_key(key, at), operand) for key, operand in operators.items())
        ]
    )


def _operator(path: Path, name: str, operand: Any, at: str, depth: int) -> Filter:
    match name:
        case "$eq":
            return OneOf(path, (_scalar(operand, at),))
        case "$ne":
            return Not(OneOf(path, (_scalar(operand, at),)))
        case "$in":
            return OneOf(path, _scalars(operand, at))
        case "$nin":
            return Not(OneOf(path, _scalars(operand, at)))
        case "$gt" | "$gte" | "$lt" | "$lte":
            return Compare(path, name, _bound(operand, at))
        case "$exists":
            return _exists(path, operand, at)
        case "$equals":
            return Equals(path, codec.plain(_listed(operand), field=at))
        case "$not":
            return _negated(path, operand, at, depth)
        case _:
            raise InvalidInputError(
                at,
                f"unknown operator: known are {', '.join(_OPERATORS)}; a nested key is "
                "written as a dotted path",
            )


def _listed(operand: Any) -> Any:
    # A tuple is a list everywhere in a filter; inside of JSON it is refused.
    return list(operand) if isinstance(operand, tuple) else operand


def _bound(operand: Any, at: str) -> str | int | float:
    bound = _scalar(operand, at)
    if bound is None or isinstance(bound, bool):
        raise InvalidInputError(at, f"must be a number or text, not {bound!r}")
    return bound


def _exists(path: Path, operand: Any, at: str) -> Filter:
    if not isinstance(operand, bool):
        raise InvalidInputError(at, f"must be True or False, not {type(operand).__name__}")
    return Exists(path) if operand else Not(Exists(path))


def _negated(path: Path, operand: Any, at: str, depth: int) -> Filter:
    if not isinstance(operand, Mapping):
        raise InvalidInputError(
            at, f"must be a dict of operators, not {type(operand).__name__}: use $ne"
        )
    return Not(_operators(path, operand, at, depth + 1))


def _list(operand: Any, at: str, of: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(operand, (list, tuple)):
        raise InvalidInputError(at, f"must be a list of {of}, not {type(operand).__name__}")
    return operand


def _scalars(operand: Any, at: str) -> tuple[Scalar, ...]:
    return tuple(
        _scalar(value, f"{at}[{index}]") for index, value in enumerate(_list(operand, at, "values"))
    )


def _scalar(operand: Any, at: str) -> Scalar:
    if isinstance(operand, (Mapping, list, tuple)):
        raise InvalidInputError(
            at, f"must be text, a number, a bool or None, not {type(operand).__name__}"
        )
    scalar: Scalar = codec.plain(operand, field=at)
    return scalar


def _all(parts: list[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else And(tuple(parts))
