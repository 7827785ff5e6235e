"""Converts timestamps and durations for the Lua scripts, which use whole microseconds."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from holdfast.values.checks import check_seconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp(microseconds: bytes | int) -> datetime:
    """Convert a timestamp that a script returned.

    >>> timestamp(b"1500000").isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return _EPOCH + timedelta(microseconds=int(microseconds))


def duration(seconds: float) -> int:
    """Convert a duration in seconds to the argument of a script, at least 1.

    >>> duration(0.5)
    500000
    """
    return max(1, round(seconds * 1_000_000))


def microseconds(when: datetime) -> int:
    """Convert a timestamp to the argument of a script.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (when - _EPOCH) // timedelta(microseconds=1)


def ttl_argument(ttl_seconds: float | None) -> int | str:
    """Convert a time to live to milliseconds; empty if there is none.

    >>> ttl_argument(1.5), ttl_argument(None)
    (1500, '')
    """
    return (
        "" if ttl_seconds is None else math.ceil(check_seconds("ttl_seconds", ttl_seconds) * 1000)
    )
