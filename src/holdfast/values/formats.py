"""Formats durations, times and texts for people."""

from __future__ import annotations

from datetime import UTC, datetime


def span(seconds: float) -> str:
    """Format a duration in its two largest units.

    >>> span(0.0123), span(3.21), span(125), span(7300), span(200_000)
    ('12 ms', '3.2 s', '2 m 5 s', '2 h 1 m', '2 d 7 h')
    """
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} m" if hours else f"{minutes} m {rest} s"


def ago(when: datetime, now: datetime | None = None) -> str:
    """Format how long ago a time is, or how far ahead.

    >>> now = datetime(2030, 1, 1, tzinfo=UTC)
    >>> ago(datetime(2029, 12, 31, 23, 59, 57, tzinfo=UTC), now)
    '3.0 s ago'
    >>> ago(now, now)
    'just now'
    """
    seconds = ((now or datetime.now(UTC)) - when).total_seconds()
    if 0 <= seconds < 1:
        return "just now"
    return f"in {span(-seconds)}" if seconds < 0 else f"{span(seconds)} ago"


def clock(when: datetime) -> str:
    """Format a time in this machine's time zone.

    >>> len(clock(datetime(2030, 1, 1, tzinfo=UTC)))
    23
    """
    try:
        when = when.astimezone()
    except (OverflowError, ValueError):
        # The first and the last day that there are, in another time zone than UTC.
        when = when.astimezone(UTC)
    return when.isoformat(sep=" ", timespec="milliseconds")[:23]


def short(text: str, limit: int = 60) -> str:
    """Return a text as one line, cut at ``limit`` characters.

    >>> short("a long " * 20, 10)
    'a long a …'
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 2].rstrip() + " …"
