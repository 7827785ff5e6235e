"""Where time comes from: a real clock, and one that a test moves by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time as an aware UTC datetime.

    >>> SystemClock().now().tzinfo is UTC
    True
    """

    def now(self) -> datetime:
        """The present moment, aware, in UTC.

        ::

            moment = clock.now()
        """
        ...


class SystemClock:
    """The clock of the machine.

    >>> SystemClock().now() <= SystemClock().now()
    True
    """

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until it is moved, for tests of expiry and leases.

    >>> clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    >>> clock.advance(60)
    >>> clock.now().minute
    1
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime.now(UTC)

    def now(self) -> datetime:
        """The moment the clock was last moved to."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward; a clock never goes back."""
        if seconds < 0:
            raise ValueError("a clock never goes back")
        self._now += timedelta(seconds=seconds)

    def turn_back(self, seconds: float) -> None:
        """Move back, as the clock of a machine that is corrected.

        >>> clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
        >>> clock.turn_back(60)
        >>> clock.now().minute
        59
        """
        self._now -= timedelta(seconds=seconds)
