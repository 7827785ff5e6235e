"""Converts ids of frameworks, which may be any text, to Holdfast ids."""

from __future__ import annotations

import hashlib
import json

from holdfast.values.checks import MAX_ID_BYTES, check_id
from holdfast.values.errors import InvalidInputError
from holdfast.values.owners import RESERVED

_LIST, _HASHED = "[", "sha256:"
_NO_IDS = (_LIST, _HASHED, RESERVED)
"""A text that begins with one of these is not used as an id unchanged."""


def key_of(*parts: str) -> str:
    r"""Return one id for one or more texts: their JSON array.

    An array of more than 512 bytes is replaced by its hash, from which the texts cannot be read
    back. Different texts have different ids.

    >>> key_of("ana", "a/b"), key_of("\n")
    ('["ana","a/b"]', '["\\n"]')
    >>> key_of("x" * 600)[:15]
    'sha256:83f21b6c'
    """
    text = json.dumps(parts, separators=(",", ":"))
    if len(text) <= MAX_ID_BYTES:
        return text
    return _HASHED + hashlib.sha256(text.encode()).hexdigest()


def id_of(text: str) -> str:
    r"""Return the text if it is a valid id, otherwise its JSON array, at any length.

    >>> id_of("thread-1"), id_of(""), id_of("a\n")
    ('thread-1', '[""]', '["a\\n"]')
    """
    if text.startswith(_NO_IDS):
        return json.dumps([text], separators=(",", ":"))
    if _size(text) > MAX_ID_BYTES:
        # The store raises for it, and names the field.
        return text
    try:
        return check_id("id", text)
    except InvalidInputError:
        return json.dumps([text], separators=(",", ":"))


def short_id_of(text: str) -> str:
    r"""Return the text if it is a valid id, otherwise ``key_of`` it, which has at most 512 bytes.

    >>> short_id_of("e1"), short_id_of("")
    ('e1', '[""]')
    >>> short_id_of("x" * 600)[:15]
    'sha256:83f21b6c'
    """
    found = id_of(text)
    return found if _size(found) <= MAX_ID_BYTES else key_of(text)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def text_of(key: str) -> str:
    """Return the text that ``id_of`` was called with.

    >>> text_of("thread-1"), text_of('[""]')
    ('thread-1', '')
    """
    return str(json.loads(key)[0]) if key.startswith(_LIST) else key
