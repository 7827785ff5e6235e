"""Limits on the tasks that workers run: how many at once, and how many start in a period."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from holdfast.values.checks import check_count
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import Agent, AgentId

LOWEST_PRIORITY, HIGHEST_PRIORITY = 0, 9
"""A task has priority 0 unless it is submitted with another; higher ones run first."""

MAX_LIMIT = 100_000
"""The largest ``concurrency``, and the largest number in a ``rate``."""

_UNITS = {
    **dict.fromkeys(("s", "sec", "second"), 1),
    **dict.fromkeys(("min", "minute"), 60),
    **dict.fromkeys(("h", "hour"), 3600),
    **dict.fromkeys(("d", "day"), 86400),
}
_RATE = re.compile(r"([0-9]{1,9})/([0-9]{0,6})([a-z]+)")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on the running tasks of a tenant, shared by all workers that claim with it.

    It applies to the tasks of ``agent``, or of the whole tenant without one. With ``per_key`` it
    applies separately to each key that tasks of the agent were submitted with; tasks without a key
    are not limited by it. ``concurrency`` is how many run at once. ``rate`` is how many start in
    any period of that length: a number, and a period in ``s``, ``min``, ``h`` or ``d``, as in
    ``"10/min"`` or ``"100/30s"``.

    >>> Limit("writer", concurrency=5, rate="10/min").period_seconds
    60
    """

    agent: Agent | None = None
    concurrency: int | None = None
    rate: str | None = None
    per_key: bool = False

    def __post_init__(self) -> None:
        if self.agent is not None:
            object.__setattr__(self, "agent", AgentId.parse(self.agent))
        elif self.per_key:
            raise InvalidInputError("per_key", "needs an agent: a key is one of its tasks")
        if self.concurrency is None and self.rate is None:
            raise InvalidInputError("concurrency", "give a concurrency, a rate, or both")
        if self.concurrency is not None:
            _check_bound("concurrency", check_count("concurrency", self.concurrency))
        if self.rate is not None:
            parse_rate(self.rate)

    @property
    def count(self) -> int | None:
        """How many tasks may begin in ``period_seconds``; ``None`` without a rate."""
        return None if self.rate is None else parse_rate(self.rate)[0]

    @property
    def period_seconds(self) -> int | None:
        """The period of the rate in seconds; ``None`` without a rate."""
        return None if self.rate is None else parse_rate(self.rate)[1]

    def to_json(self) -> dict[str, Any]:
        """Return the limit as a JSON object, for engines."""
        return {
            "agent": None if self.agent is None else str(self.agent),
            "keyed": self.per_key,
            "concurrency": self.concurrency,
            "count": self.count,
            "seconds": self.period_seconds,
        }


def parse_rate(rate: object, *, field: str = "rate") -> tuple[int, int]:
    """Return the number of tasks and the seconds of a rate such as ``"10/min"``.

    >>> parse_rate("10/min"), parse_rate("100/30s")
    ((10, 60), (100, 30))
    """
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    if found is None or found[3] not in _UNITS:
        raise InvalidInputError(field, 'must be a number and a time, such as "10/min" or "100/30s"')
    seconds = int(found[2] or 1) * _UNITS[found[3]]
    if not 1 <= seconds <= 30 * 86400:
        raise InvalidInputError(field, "must have a time of 1 second to 30 days")
    return _check_bound(field, int(found[1])), seconds


def _check_bound(field: str, count: int) -> int:
    if not 1 <= count <= MAX_LIMIT:
        raise InvalidInputError(field, f"must be from 1 to {MAX_LIMIT}")
    return count


def check_priority(priority: object) -> int:
    """Check the priority of a task.

    >>> check_priority(9)
    9
    """
    found = check_count("priority", priority)
    if found > HIGHEST_PRIORITY:
        raise InvalidInputError("priority", f"must be from 0 to {HIGHEST_PRIORITY}")
    return found
