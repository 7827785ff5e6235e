"""Keyed digests of words, names and values: an engine can compare but not read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, assert_never

from holdfast.values.codec import encode_json
from holdfast.values.errors import InvalidInputError, NotSupportedError
from holdfast.values.event_text import event_text
from holdfast.values.filters import And, Compare, Equals, Exists, Filter, Not, OneOf, Or, Path
from holdfast.values.payload_filters import filterable
from holdfast.values.recall_rules import asks, day_words, speaker_key, utterance
from holdfast.values.sealed import BlindWords
from holdfast.values.text import names_in, tokenize

DIGEST_BYTES = 12
MAX_FIELDS = 16_384
"""Maximum number of fields of an encrypted value that filters can use; more are refused."""

# Neither a vowel nor a suffix: the tokeniser returns such a word as it is.
_ALPHABET = str.maketrans("abcdef", "bcdfgh")
_MARKS = "?\uff1f\u061f\u037e"


@dataclass(frozen=True, slots=True)
class BlindQuestion:
    """A question as keyed digests of its words, and the lexeme of each digest."""

    text: str
    lexemes: Mapping[str, str]


class Blind:
    """Makes the keyed digests of one tenant.

    >>> blind = Blind(bytes(32))
    >>> blind.words("low tides") == blind.words("the tide is low")
    True
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def digest(self, kind: str, *parts: str) -> str:
        """Return a keyed digest, as a word that the tokeniser does not change.

        >>> len(Blind(bytes(32)).digest("word", "tide"))
        24
        """
        text = parts[0] if len(parts) == 1 else encode_json(list(parts))
        keyed = blake2b(
            text.encode(), key=self._secret, digest_size=DIGEST_BYTES, person=kind.encode()
        )
        return keyed.hexdigest().translate(_ALPHABET)

    def words(self, text: str, *, language: str = "english") -> str:
        """Return the digests of a text's words, sorted, with repeats.

        >>> Blind(bytes(32)).words("")
        ''
        """
        return " ".join(
            sorted(self.digest("word", one) for one in tokenize(text, language=language))
        )

    def event(self, type: str, payload: dict[str, Any], when: datetime) -> BlindWords:
        """Return the digests of an event's words.

        ::

            words = blind.event("message", payload, occurred_at)
        """
        day = self.words(day_words(when))
        said = utterance(type, payload)
        if said is None:
            name = speaker_key(type, payload)
            return BlindWords(
                self.words(event_text(type, payload)),
                day,
                name=self.digest("name", name) if name else "",
            )
        words = self.words(said.text)
        if asks(type, payload):
            words = f"{words} ?"
        elif any(mark in said.text for mark in _MARKS):
            words = f"? {words or '.'}"
        name = speaker_key(type, payload)
        return BlindWords(
            self.words(said.speaker),
            day,
            self.digest("by", said.speaker),
            words,
            self.digest("name", name) if name else "",
        )

    def question(self, text: str) -> BlindQuestion:
        """Return the digests of a question's words, then of the names that it may contain.

        >>> Blind(bytes(32)).question(" ").text
        ' '
        """
        if not text.strip():
            return BlindQuestion(text, {})
        lexemes = {self.digest("word", one): one for one in tokenize(text)}
        words = [self.digest("word", one) for one in tokenize(text)]
        names = [self.digest("name", one) for one in names_in(text)]
        return BlindQuestion(" ".join([*words, *names]) or "?", lexemes)

    def scalars(self, payload: Mapping[str, Any]) -> dict[str, str]:
        """Return the digests of the scalars at the top level of a payload, for filters.

        >>> len(Blind(bytes(32)).scalars({"use": "postgres", "tags": []}))
        1
        """
        found = filterable(payload)
        _check_count(len(found))
        return {self.key((key,)): self.value((key,), value) for key, value in found.items()}

    def fields(self, value: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the digests of the scalars at all levels of an object, for filters.

        >>> len(Blind(bytes(32)).fields({"author": {"name": "Ravi"}, "tags": ["a", "b"]}))
        3
        """
        found: dict[str, list[str]] = {}
        for path, one in _paths(value, ()):
            some = one if isinstance(one, list) else [one]
            scalars = (item for item in some if not isinstance(item, (dict, list)))
            found[self.key(path)] = sorted({self.value(path, item) for item in scalars})
            _check_count(len(found) + sum(map(len, found.values())) // 8)
        return found

    def key(self, path: Path) -> str:
        """Return the digest of a path."""
        return self.digest("key", *path, "")

    def value(self, path: Path, value: Any) -> str:
        """Return the digest of a scalar at a path; equal numbers have equal digests."""
        return self.digest("value", *path, _canonical(value))

    def filter(self, wanted: Filter, *, whole: bool) -> Filter:
        """Return a filter on digests. ``whole`` allows ``$equals``, where there are no lists.

        Raises ``NotSupportedError`` for what digests cannot compare. ::

            wanted = blind.filter(parse({"kind": "note"}), whole=False)
        """
        match wanted:
            case OneOf(path, values):
                digests = tuple(self.value(path, one) for one in values)
                return OneOf((self.key(path),), digests)
            case Exists(path):
                return Exists((self.key(path),))
            case Equals(path, value) if whole:
                return OneOf((self.key(path),), (self.value(path, value),))
            case Equals():
                raise _not_comparable("$equals")
            case Compare(_, order, _):
                raise _not_comparable(order)
            case And(parts):
                return And(tuple(self.filter(one, whole=whole) for one in parts))
            case Or(parts):
                return Or(tuple(self.filter(one, whole=whole) for one in parts))
            case Not(part):
                return Not(self.filter(part, whole=whole))
            case _:
                assert_never(wanted)


def _paths(value: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    for key, one in value.items():
        yield (*path, key), one
        if isinstance(one, dict):
            yield from _paths(one, (*path, key))


def _canonical(value: Any) -> str:
    if isinstance(value, float):
        exact = Decimal(repr(value))
        whole = exact == exact.to_integral_value() if abs(value) < 1e300 else True
        return str(int(exact)) if whole else repr(value)
    return encode_json(value)


def _check_count(count: int) -> None:
    if count > MAX_FIELDS:
        raise InvalidInputError(
            "value",
            f"has more than {MAX_FIELDS} fields: in sealed mode each field has a digest for "
            "filters; put the fields into one text, or into several values",
        )


def _not_comparable(operator: str) -> NotSupportedError:
    return NotSupportedError(
        "sealed",
        f"{operator} in a filter",
        why="values are compared by keyed digests, which have no order: use $eq, $in, $ne, $nin or "
        "$exists, or filter what was read",
    )
