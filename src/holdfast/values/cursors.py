"""Cursors: the position of the last entry of a page, as opaque text."""

from __future__ import annotations

import base64
from datetime import datetime

import msgspec

from holdfast.values.checks import check_optional_id, check_text, check_time
from holdfast.values.errors import InvalidInputError


def encode_cursor(when: datetime, *names: str) -> str:
    """Encode the position of a page's last entry as opaque text, for ``decode_cursor``.

    >>> from datetime import UTC
    >>> when = datetime(2030, 1, 1, tzinfo=UTC)
    >>> decode_cursor(encode_cursor(when, "t1"), names=1) == (when, ["t1"])
    True
    """
    raw = msgspec.json.encode([when.isoformat(), *names])
    return base64.urlsafe_b64encode(raw).decode("ascii")


def decode_cursor(cursor: object, *, names: int) -> tuple[datetime, list[str]]:
    """Return the time and the names in a cursor.

    Raises ``InvalidInputError`` if it is damaged, or does not have ``names`` names.

    >>> decode_cursor("nonsense", names=1)
    Traceback (most recent call last):
    ...
    holdfast.values.errors.InvalidInputError: cursor: is not one that this listing returned
    """
    try:
        raw = base64.b64decode(check_text("cursor", cursor), altchars=b"-_", validate=True)
        when, *rest = msgspec.json.decode(raw, type=list[str])
        moment = check_time("cursor", datetime.fromisoformat(when))
        rest = [check_optional_id("cursor", name) for name in rest]
    except ValueError:
        moment, rest = None, []
    if moment is None or len(rest) != names:
        raise InvalidInputError("cursor", "is not one that this listing returned")
    return moment, rest
