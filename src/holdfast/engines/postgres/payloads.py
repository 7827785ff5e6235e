"""Filters over the payloads of events: the filterable part of a payload, and filters as jsonpath.

In addition to its body, an event has the scalars at the top level of its payload as jsonb, whose
texts are escaped (``holdfast.engines.postgres.escape``). A filter over them is one jsonpath, with
its values as variables: two parameters of a statement for any filter.
"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from holdfast.engines.postgres.escape import escape
from holdfast.values.codec import decode_json, encode_json
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
from holdfast.values.payload_filters import MAX_TEXT_BYTES, filterable

_ORDERS: dict[Order, str] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_values = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder()
_TYPES: dict[type, str] = {str: "string", int: "number", float: "number", bool: "boolean"}


def stored_filterable(type: str, body: str) -> str | None:
    """Return the filterable part of an event that is stored with its body, or ``None``.

    Only the role and name of a message are filterable, so nothing is stored for it: a filter reads
    its body instead. Most events are messages, and they are appended far more often than filtered.

    >>> stored_filterable("message", '{"v":1,"role":"user","content":[]}')
    >>> stored_filterable("decision", '{"use":"postgres"}')
    '{"use":"postgres"}'
    """
    return None if type == "message" else filterable_text(body)


def filterable_text(body: str) -> str:
    r"""Return the filterable part of a body as jsonb text, like the SQL function ``filterable_of``.

    >>> print(filterable_text('{"a":"\\u0000","b":[1],"c":2}'))
    {"a":"\u00010","c":2}
    """
    # A body that is no object, or has U+0000 or U+0001, which the codec writes in this form only.
    if "\\u000" in body or body[:1] != "{":
        kept = filterable(decode_json(body))
        return encode_json({escape(key): _escaped(value) for key, value in kept.items()})
    # Usually nothing has to be decoded but the keys: the values stay the text that they are.
    values: dict[str, msgspec.Raw] = _values.decode(body)
    return _encoder.encode({key: raw for key, raw in values.items() if _fits(bytes(raw))}).decode()


def _fits(raw: bytes) -> bool:
    """Return whether the JSON text of a value is a scalar that a filter can compare."""
    if raw[:1] in (b"{", b"["):
        return False
    if raw[:1] != b'"' or len(raw) <= MAX_TEXT_BYTES + 2:
        return True
    # An escape is longer than what it stands for.
    return b"\\" in raw and len(msgspec.json.decode(raw).encode()) <= MAX_TEXT_BYTES


class PayloadPath:
    """A filter as a jsonpath, and the JSON text of its variables.

    Each condition checks the type of a value before it compares it. So it is true or false and
    never unknown, and its negation is true exactly if the condition is false.

    >>> wanted = PayloadPath(Compare(("cost",), "$gt", 3))
    >>> print(wanted.path, wanted.values)
    ($."cost".type() == "number" && $."cost" > $v0) {"v0":3}
    """

    def __init__(self, wanted: Filter) -> None:
        self._values: dict[str, Any] = {}
        self.path = self._condition(wanted)
        self.values = encode_json(self._values)

    def _condition(self, wanted: Filter) -> str:
        match wanted:
            case OneOf(path, values):
                return self._one_of(_key(path), values)
            case Compare(path, order, value):
                key, bound = _key(path), self._variable(_escaped(value))
                return f'({key}.type() == "{_kind(value)}" && {key} {_ORDERS[order]} {bound})'
            case Exists(path):
                return f"exists({_key(path)})"
            case Equals(path, value):
                # A scalar: other values are refused for payloads, and stored payloads have none.
                return self._one_of(_key(path), (value,))
            case And(parts):
                return _joined(" && ", [self._condition(part) for part in parts], "1 == 1")
            case Or(parts):
                return _joined(" || ", [self._condition(part) for part in parts], "1 == 0")
            case Not(part):
                return f"!({self._condition(part)})"
            case _:
                assert_never(wanted)

    def _one_of(self, key: str, values: tuple[Scalar, ...]) -> str:
        kinds: dict[str, list[Any]] = {}
        for value in values:
            kinds.setdefault(_kind(value), []).append(_escaped(value))
        found = [
            f'({key}.type() == "{kind}" && {key} == {self._variable(some)}[*])'
            for kind, some in kinds.items()
        ]
        return _joined(" || ", found, "1 == 0")

    def _variable(self, value: Any) -> str:
        name = f"v{len(self._values)}"
        self._values[name] = value
        return f"${name}"


def _key(path: Path) -> str:
    [key] = path
    return f"$.{encode_json(escape(key))}"


def _kind(value: Scalar) -> str:
    return "null" if value is None else _TYPES[type(value)]


def _joined(word: str, conditions: list[str], otherwise: str) -> str:
    return f"({word.join(conditions) or otherwise})"


def _escaped(value: Any) -> Any:
    return escape(value) if isinstance(value, str) else value
