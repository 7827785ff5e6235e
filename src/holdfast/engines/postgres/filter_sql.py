"""Compile filters over metadata to SQL: placeholders only, every key and value is a parameter.

Metadata is compared as jsonb, whose texts are escaped (``holdfast.engines.postgres.escape``). The
jsonb also holds the tenant and the collection, so that one index lookup finds the documents of one
collection only. All parameters are sent as text and cast once per statement.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, assert_never

from holdfast.engines.postgres.escape import escape
from holdfast.values.codec import decode_json, encode_json
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
    Order,
    Path,
    Scalar,
)

MAX_PARAMETERS = 30_000
"""Postgres counts the parameters of a statement in 16 bits."""

FEW = 8
"""Up to this many values, each is looked up in the index; otherwise rows are compared directly."""

_COLUMN = "d.filterable"
_SCOPE = "\x01"
"""A key that no metadata has: ``escape`` adds a digit to each such character."""

_ORDERS: dict[Order, str] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def filterable(metadata: str, *, tenant: str, collection: str) -> str:
    r"""Return the JSON text of metadata with its tenant and collection, escaped for jsonb.

    >>> print(filterable('{"a":"\\u0000"}', tenant="t", collection="c"))
    {"\u0001":{"t":"c"},"a":"\u00010"}
    """
    # The codec writes both characters that are escaped, U+0000 and U+0001, in this form only.
    if "\\u000" in metadata:
        metadata = encode_json(_escaped(decode_json(metadata)))
    scope = encode_json(_scope(tenant, collection))
    return scope if metadata == "{}" else f"{scope[:-1]},{metadata[1:]}"


def _scope(tenant: str, collection: str) -> dict[str, Any]:
    return {_SCOPE: {tenant: collection}}


def is_indexed(wanted: Filter) -> bool:
    """Return whether the index can find all documents of a filter, possibly with others.

    >>> is_indexed(And((OneOf(("k",), (1,)), Exists(("j",))))), is_indexed(Exists(("k",)))
    (True, False)
    """
    match wanted:
        case OneOf(_, values):
            return 0 < len(values) <= FEW
        case And(parts):
            return any(map(is_indexed, parts))
        case Or(parts):
            return bool(parts) and all(map(is_indexed, parts))
        case _:
            return False


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return escape(value)
        case list():
            return [_escaped(item) for item in value]
        case dict():
            return {escape(key): _escaped(item) for key, item in value.items()}
        case _:
            return value


def held(wanted: Filter, *, tenant: str, collection: str) -> list[str]:
    r"""Return JSON texts: a document that passes an indexed filter contains at least one of them.

    >>> print(*held(OneOf(("kind",), ("note",)), tenant="t", collection="c"))
    {"\u0001":{"t":"c"},"kind":"note"} {"\u0001":{"t":"c"},"kind":["note"]}
    """
    match wanted:
        case OneOf(path, values):
            scope = _scope(tenant, collection)
            return [_holding(scope, path, found) for found in _forms(values)]
        case And(parts):
            part = next(filter(is_indexed, parts))
            return held(part, tenant=tenant, collection=collection)
        case Or(parts):
            return [
                one for part in parts for one in held(part, tenant=tenant, collection=collection)
            ]
        case _:
            return []


def _forms(values: tuple[Scalar, ...]) -> list[Any]:
    """Return each value itself, and a list that contains it: the index can find both."""
    return [found for value in map(_escaped, values) for found in (value, [value])]


def _holding(scope: dict[str, Any], path: Path, found: Any) -> str:
    for key in reversed(path):
        found = {escape(key): found}
    return encode_json(scope | found)


class FilterSql:
    """A filter as a condition on ``d.filterable``, and its parameters, numbered from ``first``.

    A parameter is cast once per statement. With ``planned``, the planner sees its value and can
    estimate how many rows pass, but it is cast for each row that is read.

    >>> wanted = FilterSql(OneOf(("kind",), ("note",)), first=8, tenant="t", collection="c")
    >>> wanted.condition
    '(d.filterable @> (SELECT $8::text::jsonb) OR d.filterable @> (SELECT $9::text::jsonb))'
    """

    def __init__(
        self, wanted: Filter, *, first: int, tenant: str, collection: str, planned: bool = False
    ) -> None:
        self._first = first
        self._planned = planned
        self._scope = _scope(tenant, collection)
        self.indexed = is_indexed(wanted)
        self.parameters: list[str | list[str]] = []
        self.condition = self._condition(wanted)
        if len(self.parameters) > MAX_PARAMETERS:
            raise InvalidInputError(
                "filter", f"has more than {MAX_PARAMETERS} keys and values: ask for fewer at once"
            )

    def more(self, parameter: list[str]) -> str:
        """Add a parameter after those of the condition, and return its placeholder."""
        return self._placeholder(parameter)

    def _condition(self, wanted: Filter) -> str:
        match wanted:
            case OneOf(path, values):
                return self._one_of(path, values)
            case Compare(path, order, value):
                return self._compare(path, _ORDERS[order], value)
            case Exists(path):
                return f"{self._value(path)} IS NOT NULL"
            case Equals(path, value):
                whole = self._cast(encode_json(_escaped(value)), "text::jsonb")
                return f"COALESCE({self._value(path)} = {whole}, FALSE)"
            case And(parts):
                return self._joined(" AND ", parts) or "TRUE"
            case Or(parts):
                return self._joined(" OR ", parts) or "FALSE"
            case Not(part):
                return f"NOT ({self._condition(part)})"
            case _:
                assert_never(wanted)

    def _joined(self, word: str, parts: tuple[Filter, ...]) -> str:
        return word.join(f"({self._condition(part)})" for part in parts)

    def _one_of(self, path: Path, values: tuple[Scalar, ...]) -> str:
        if len(values) > FEW:
            texts = [encode_json(_escaped(value)) for value in values]
            wanted = self._cast(texts, "text[]::jsonb[]")
            return _some_item(self._value(path), f"{{item}} = ANY ({wanted}::jsonb[])")
        inside = [
            f"{_COLUMN} @> {self._cast(_holding(self._scope, path, found), 'text::jsonb')}"
            for found in _forms(values)
        ]
        return f"({' OR '.join(inside)})" if inside else "FALSE"

    def _compare(self, path: Path, order: str, value: str | float) -> str:
        if isinstance(value, str):
            bound = self._cast(escape(value), "text")
            fits = f'holdfast.json_text({{item}}) {order} {bound} COLLATE "C"'
        else:
            # Compare by the JSON text of the number, as for metadata.
            said = str(value) if isinstance(value, int) else str(Decimal(repr(value)))
            bound = self._cast(said, "text::numeric")
            fits = f"holdfast.json_number({{item}}) {order} {bound}"
        found = self._value(path)
        return (
            f"CASE jsonb_typeof({found}) WHEN 'array' THEN {_some_item(found, fits)} "
            f"ELSE COALESCE({fits.format(item=found)}, FALSE) END"
        )

    def _value(self, path: Path) -> str:
        # Key by key, since ``#>`` with a path would also index into lists.
        steps = "".join(f" -> {self._placeholder(escape(key))}::text" for key in path)
        return f"({_COLUMN}{steps})"

    def _cast(self, parameter: str | list[str], to: str) -> str:
        cast = f"{self._placeholder(parameter)}::{to}"
        return cast if self._planned else f"(SELECT {cast})"

    def _placeholder(self, parameter: str | list[str]) -> str:
        self.parameters.append(parameter)
        return f"${self._first + len(self.parameters) - 1}"


def _some_item(found: str, fits: str) -> str:
    return (
        f"EXISTS (SELECT FROM holdfast.json_items({found}) AS item "
        f"WHERE {fits.format(item='item')})"
    )
