"""Limits on the size of a value, a filter, a query and a graph traversal.

Limits apply to new writes and new queries. Stored data is read, flushed and replayed whatever its
size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, assert_never

from holdfast.values.errors import InvalidInputError
from holdfast.values.filters import And, Compare, Equals, Exists, Filter, Not, OneOf, Or
from holdfast.values.text import tokenize

MIB = 1 << 20

ITEMS_PER_CALL = 1000
"""How many items one call may read or write."""
ITEM_BYTES_PER_CALL = 64 * MIB
"""How many bytes the values of all items of one call may have, as JSON text."""
ITEM_VECTORS = 256
"""How many vectors one item may have."""
ITEM_NUMBERS_PER_CALL = 1 << 22
"""How many numbers all vectors of one call may have."""
NAMESPACE_LABELS = 32
NAMESPACE_BYTES = 1024
"""How many bytes a namespace may have: with tenant and owner it must fit an index entry."""

_BYTES_PER_CHARACTER = 4
_SPACED = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one state; 0 disables a limit.

    >>> Limits().value_bytes
    1048576
    """

    value_bytes: int = MIB
    """The most bytes, as JSON text, of one message, event, state, document, fact, entity, item or
    channel event."""

    filter_terms: int = 256
    """The most conditions of a filter; each value that a condition compares with counts."""

    query_words: int = 512
    """The most distinct words of a question."""

    walk_depth: int = 10
    walk_entities: int = 10_000

    def check_value(self, field: str, *texts: str) -> None:
        """Raise ``InvalidInputError`` if the texts of a value are too large together.

        >>> Limits(value_bytes=3).check_value("message", "low", "tide")
        Traceback (most recent call last):
            ...
        holdfast.values.errors.InvalidInputError: message: has 7 bytes, and at most 3 are allowed: store it as a blob, or raise HOLDFAST_MAX_VALUE_BYTES
        """  # noqa: E501 - a doctest compares whole lines
        most = self.value_bytes
        if not most or sum(map(len, texts)) * _BYTES_PER_CHARACTER <= most:
            return
        size = sum(len(text.encode()) for text in texts)
        if size > most:
            raise InvalidInputError(
                field,
                f"has {size} bytes, and at most {most} are allowed: "
                "store it as a blob, or raise HOLDFAST_MAX_VALUE_BYTES",
            )

    def check_filter(self, field: str, filter: Filter) -> Filter:
        """Raise ``InvalidInputError`` for a filter with too many conditions.

        >>> Limits(filter_terms=1).check_filter("filter", Exists(("price",)))
        Exists(path=('price',))
        """
        count = _terms(filter)
        if self.filter_terms and count > self.filter_terms:
            raise InvalidInputError(
                field,
                f"has {count} conditions, and at most {self.filter_terms} are allowed: "
                "ask several times, or raise HOLDFAST_MAX_FILTER_TERMS",
            )
        return filter

    def check_query(self, field: str, query: str) -> str:
        """Raise ``InvalidInputError`` for a question with too many distinct words.

        >>> Limits(query_words=2).check_query("query", "low tide")
        'low tide'
        """
        most = self.query_words
        if most and len(query) > most and (count := len(set(tokenize(query)))) > most:
            raise InvalidInputError(
                field,
                f"has {count} different words, and at most {most} are allowed: "
                "shorten it, or raise HOLDFAST_MAX_QUERY_WORDS",
            )
        return query

    def check_walk(self, depth: int, limit: int) -> None:
        """Raise ``InvalidInputError`` if the depth or the limit of a graph traversal is too high.

        >>> Limits().check_walk(depth=2, limit=1000)
        """
        bounds: Iterable[tuple[str, int, int, str]] = (
            ("depth", depth, self.walk_depth, "HOLDFAST_MAX_WALK_DEPTH"),
            ("limit", limit, self.walk_entities, "HOLDFAST_MAX_WALK_ENTITIES"),
        )
        for field, asked, most, setting in bounds:
            if most and asked > most:
                raise InvalidInputError(field, f"must be at most {most}, or raise {setting}")


DEFAULT_LIMITS = Limits()


def first_words(text: str, most: int) -> str:
    """Return the start of a text with at most ``most`` different words; 0 means all of it.

    >>> first_words("low tide low noon", 2)
    'low tide low'
    """
    if not most or len(text) <= most:
        return text
    seen: set[str] = set()
    for word in _SPACED.finditer(text):
        seen.update(tokenize(word[0]))
        if len(seen) > most:
            return text[: word.start()].rstrip()
    return text


def _terms(filter: Filter) -> int:
    match filter:
        case OneOf():
            return max(1, len(filter.values))
        case Compare() | Exists():
            return 1
        case Equals():
            return _scalars(filter.value)
        case And() | Or():
            return sum(map(_terms, filter.parts))
        case Not():
            return _terms(filter.part)
        case _:
            assert_never(filter)


def _scalars(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value
    return max(1, sum(map(_scalars, parts))) if isinstance(value, (dict, list)) else 1
