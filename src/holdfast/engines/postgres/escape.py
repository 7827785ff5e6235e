"""Escape text for Postgres: neither ``text`` nor ``jsonb`` can store U+0000.

U+0000 becomes U+0001 and a 0, U+0001 becomes U+0001 and a 1; everything else stays as it is.
``unescape`` is exact, different texts stay different, and the order by code points is kept, so the
database can compare and sort escaped texts (``COLLATE "C"``).
"""

from __future__ import annotations

_LEAD = "\x01"


def escape(text: str) -> str:
    r"""Return a text without U+0000, from which ``unescape`` returns this one.

    >>> escape("plain"), escape("a\x00b")
    ('plain', 'a\x010b')
    """
    if "\x00" not in text and _LEAD not in text:
        return text
    return text.replace(_LEAD, _LEAD + "1").replace("\x00", _LEAD + "0")


def unescape(text: str) -> str:
    r"""Return the text that ``escape`` was given.

    >>> unescape("plain"), unescape("a\x010b")
    ('plain', 'a\x00b')
    """
    if _LEAD not in text:
        return text
    return text.replace(_LEAD + "0", "\x00").replace(_LEAD + "1", _LEAD)
