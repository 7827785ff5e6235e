"""The forms of a sealed (encrypted) value, which engines store like any other value.

A JSON object becomes one with the key ``holdfast.sealed``, a text begins with ``holdfast.sealed:``,
and bytes have the kind ``holdfast.sealed``. Callers cannot store these forms themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from holdfast.values.errors import InvalidInputError

SEALED = "holdfast.sealed"
"""The key of the ciphertext in a sealed object, and the kind of sealed bytes."""

SEALED_TEXT = f"{SEALED}:"
"""The prefix of a sealed (encrypted) text."""

WORDS = "words"
"""The key of a sealed event's words as keyed digests: see ``BlindWords``."""

_NAMED = re.compile(rf'"{re.escape(SEALED)}"\s*:')
_RESERVED = (
    f"must not have the key {SEALED!r}, nor a text that begins with {SEALED_TEXT!r}: they are "
    "reserved; use another"
)


def is_sealed(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a decoded JSON value is a sealed (encrypted) object.

    >>> is_sealed({"holdfast.sealed": "AQ"}), is_sealed({"step": 1})
    (True, False)
    """
    return isinstance(value, dict) and SEALED in value


def check_unsealed(field: str, text: str) -> str:
    """Check that a text, JSON or not, does not have the form of a sealed value.

    >>> check_unsealed("state", '{"step":1}')
    '{"step":1}'
    """
    if SEALED in text and (_NAMED.search(text) or text.startswith(SEALED_TEXT)):
        raise InvalidInputError(field, _RESERVED)
    return text


def check_parts(field: str, text: str) -> str:
    """Check that no text inside a JSON text has the form of a sealed text.

    >>> check_parts("message", '{"text":"hello"}')
    '{"text":"hello"}'
    """
    if f'"{SEALED_TEXT}' in text:
        raise InvalidInputError(field, _RESERVED)
    return check_unsealed(field, text)


def text_piece(text: str) -> str:
    """Return the text if it is sealed, else ``""``.

    >>> text_piece("holdfast.sealed:AQ"), text_piece("hello")
    ('holdfast.sealed:AQ', '')
    """
    return text if text.startswith(SEALED_TEXT) else ""


def part_piece(text: str) -> str:
    """Return the first sealed text inside a JSON text; ``""`` without one.

    >>> part_piece('[{"type":"text","text":"holdfast.sealed:AQ"}]')
    'holdfast.sealed:AQ'
    """
    _, found, rest = text.partition(f'"{SEALED_TEXT}')
    return SEALED_TEXT + rest.partition('"')[0] if found else ""


def object_piece(text: str) -> str:
    """Return the ciphertext of a sealed object in JSON text, as a sealed text; ``""`` without one.

    >>> object_piece('{"holdfast.sealed":"AQ"}')
    'holdfast.sealed:AQ'
    """
    _, found, rest = text.partition(f'"{SEALED}":"')
    return SEALED_TEXT + rest.partition('"')[0] if found else ""


def note_piece(text: str) -> str:
    """Return the sealed text at the end of a note; ``""`` without one.

    >>> note_piece("gave up after 5 attempts: holdfast.sealed:AQ")
    'holdfast.sealed:AQ'
    """
    _, found, rest = text.partition(SEALED_TEXT)
    return SEALED_TEXT + rest if found else ""


def sealed_digest(piece: str) -> str:
    """Return the keyed digest that follows a sealed text; ``""`` without one.

    >>> sealed_digest("holdfast.sealed:AQ b7")
    'b7'
    """
    words = piece.split(" ")
    return words[1] if len(words) > 1 else ""


@dataclass(frozen=True, slots=True)
class BlindWords:
    """The words of an encrypted event as keyed digests; a search uses nothing else of it."""

    text: str
    """The words of the event's text; of an utterance, those of the speaker only."""

    day: str
    """The words of the day on which it occurred."""

    by: str = ""
    """The speaker; empty if the event is no message with text."""

    said: str = ""
    """The words of an utterance, with a question mark before them or after them."""

    name: str = ""
    """See ``recall_rules.speaker_key``."""

    def to_json(self) -> list[str]:
        """Return the words as they are stored.

        >>> BlindWords("b7", "c2").to_json()
        ['b7', 'c2']
        """
        found = [self.text, self.day, self.by, self.said, self.name]
        while found and not found[-1]:
            found.pop()
        return found


def blind_words(payload: Mapping[str, Any]) -> BlindWords | None:
    """Return the words of a sealed payload as keyed digests; ``None`` for a plain one.

    >>> blind_words({"holdfast.sealed": "AQ", "words": ["b7", "c2"]}).day
    'c2'
    """
    if SEALED not in payload:
        return None
    return BlindWords(*[*payload.get(WORDS, ()), "", ""][:5])
