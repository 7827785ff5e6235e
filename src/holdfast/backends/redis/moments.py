"""Times and spans as the scripts count them: whole microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(microseconds: bytes | int) -> datetime:
    """The time that a script gave.

    >>> moment(b"1500000").isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return _EPOCH + timedelta(microseconds=int(microseconds))


def span(seconds: float) -> int:
    """A span of time as a script takes it; the shortest one is still a span.

    >>> span(0.5)
    500000
    """
    return max(1, round(seconds * 1_000_000))


def microseconds(when: datetime) -> int:
    """A moment as a script takes it.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
