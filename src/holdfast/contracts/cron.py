"""Computes the times of a cron expression in a time zone."""

from __future__ import annotations

import heapq
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from cronsim import CronSim, CronSimError

from holdfast.values.checks import check_text
from holdfast.values.errors import InvalidInputError

MAX_CRON_CHARACTERS = 200
MAX_ZONE_CHARACTERS = 64
_FIELDS = 5
_SHIFT = timedelta(hours=26)
"""More than any clock was ever set back or forward."""
_MINUTE = timedelta(minutes=1)


class Cron:
    """A cron expression of five fields in a time zone: minute, hour, day, month, day of the week.

    A tick is a time that the expression matches. When clocks are set forward, a tick at a time that
    does not exist is at the first minute after the gap. When they are set back, a tick at a time
    that exists twice is at the first of the two. If the minute or the hour field begins with ``*``,
    ticks follow elapsed time: a local time that exists twice has two ticks, and one that does not
    exist has none.

    >>> nine = Cron("0 9 * * mon-fri", "Europe/Paris")
    >>> str(nine.next_tick(datetime(2030, 3, 1, 12, tzinfo=UTC)))
    '2030-03-04 08:00:00+00:00'
    """

    def __init__(self, expression: str, timezone: str) -> None:
        self.expression = _check_expression(expression)
        self.timezone = check_text("timezone", timezone)
        self._zone = _check_zone(self.timezone)
        self._elapsed = any(field.startswith("*") for field in self.expression.split()[:2])

    def ticks_after(self, after: datetime) -> Iterator[datetime]:
        """Yield the ticks after the given time, in order. It ends if none comes within 50 years."""
        waiting: list[datetime] = []
        last = after
        # The library counts local times, which always go forward; the zone is applied here.
        for local in CronSim(self.expression, self._local(after) - self._span(after)):
            moments = self._moments(local)
            for moment in moments:
                heapq.heappush(waiting, moment)
            # A time that exists twice is followed by others before it comes again.
            while waiting and moments and waiting[0] <= moments[0]:
                if (moment := heapq.heappop(waiting)) > last:
                    last = moment
                    yield moment

    def next_tick(self, after: datetime) -> datetime | None:
        """Return the first tick after the given time; ``None`` if there is none within 50 years."""
        return next(self.ticks_after(after), None)

    def last_ticks(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """Return the last ``limit`` ticks after ``after`` and up to ``until``, in order.

        The cost depends on ``limit``, not on the time between the two.
        """
        found: set[datetime] = set()
        enough = after
        start = self._local(until) + self._span(until) + _MINUTE
        for local in CronSim(self.expression, start, reverse=True):
            moments = self._moments(local)
            found.update(one for one in moments if after < one <= until)
            if moments and max(moments) < enough:
                break
            if len(found) >= limit:
                # What comes now may still be later than these, by as much as clocks are set back.
                enough = max(enough, min(found) - self._span(min(found)))
        return sorted(found)[-limit:] if limit else []

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone).replace(tzinfo=None)

    def _span(self, moment: datetime) -> timedelta:
        """Return by how much the UTC offset changes within 26 hours of a time; mostly zero."""
        offsets = [
            (moment + shift).astimezone(self._zone).utcoffset() or timedelta()
            for shift in (-_SHIFT, timedelta(), _SHIFT)
        ]
        return max(offsets) - min(offsets)

    def _moments(self, local: datetime) -> list[datetime]:
        """Return the UTC times of a tick at this local time: one, two or none."""
        first, second = self._offsets(local)
        if first == second:
            return [_moment(local, first)]
        if first > second:
            return [_moment(local, one) for one in (first, second)[: 2 if self._elapsed else 1]]
        if self._elapsed:
            return []
        while first != second:
            local += _MINUTE
            first, second = self._offsets(local)
        return [_moment(local, first)]

    def _offsets(self, local: datetime) -> tuple[timedelta, timedelta]:
        one = local.replace(tzinfo=self._zone)
        return (
            one.utcoffset() or timedelta(),
            one.replace(fold=1).utcoffset() or timedelta(),
        )


def _moment(local: datetime, offset: timedelta) -> datetime:
    return (local - offset).replace(tzinfo=UTC)


def _check_expression(value: object) -> str:
    text = check_text("cron", value)
    if len(text) > MAX_CRON_CHARACTERS:
        raise InvalidInputError("cron", f"must be at most {MAX_CRON_CHARACTERS} characters")
    fields = text.split()
    if len(fields) != _FIELDS:
        raise InvalidInputError(
            "cron",
            f"must have 5 fields (minute hour day month weekday), as in '0 9 * * mon-fri', "
            f"not {len(fields)}",
        )
    try:
        CronSim(text, datetime(2030, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise InvalidInputError(
            "cron", f"is not a cron expression ({error}): write it as '0 9 * * mon-fri'"
        ) from None
    return " ".join(fields)


_LOCAL_NAMES = frozenset({"localtime", "posixrules", "Factory", "leapseconds"})
"""Names that mean a different time zone on each machine, or no time zone."""


def _check_zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    if 0 < len(name) <= MAX_ZONE_CHARACTERS:
        try:
            if name not in _LOCAL_NAMES and not name.startswith(("posix/", "right/")):
                return zoneinfo.ZoneInfo(name)
        except (ValueError, KeyError, OSError):
            pass
    raise InvalidInputError(
        "timezone",
        f"is not a known time zone: {name[:MAX_ZONE_CHARACTERS]!r}; use a name such as "
        "'Europe/Paris', and install the package tzdata where the system has no time zones",
    )
