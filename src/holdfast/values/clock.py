"""Sources of time: the system clock, and a clock that a test sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """A source of the current time.

    >>> SystemClock().now().tzinfo is UTC
    True
    """

    def now(self) -> datetime:
        """Return the current time as an aware UTC datetime.

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
        """Return the current time as an aware UTC datetime."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that changes only when a test sets it, for tests of expiry and leases.

    >>> clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    >>> clock.advance(60)
    >>> clock.now().minute
    1
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime.now(UTC)

    def now(self) -> datetime:
        """Return the time to which the clock was last set."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward. Raises ``ValueError`` if ``seconds`` is below 0."""
        if seconds < 0:
            raise ValueError("seconds must be 0 or more: a clock never goes back, use turn_back")
        self._now += timedelta(seconds=seconds)

    def turn_back(self, seconds: float) -> None:
        """Move the clock back, as when a machine's clock is corrected.

        >>> clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
        >>> clock.turn_back(60)
        >>> clock.now().minute
        59
        """
        self._now -= timedelta(seconds=seconds)
