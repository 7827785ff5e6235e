"""Counts how many more tasks the limits of a claim permit to start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from holdfast.engines.inmemory.tasks.data import LedgerData, TaskRow
from holdfast.values.tasks.limits import Limit

Scope = tuple[object, ...]


class Rooms:
    """Applies limits of concurrency and rate to the tasks of a claim.

    ::

        rooms = Rooms(data, claim.limits, now)
        taken = [row for row in due if rooms.take(row)]
    """

    def __init__(self, data: LedgerData, limits: Sequence[Limit], now: datetime) -> None:
        self._data, self._limits, self._now = data, limits, now
        self._at_work: Counter[Scope] = Counter()
        if limits:
            for task_id in data.working:
                row = data.tasks[task_id]
                self._at_work.update({scope for _, scope in self._scopes(row)})

    def take(self, row: TaskRow) -> bool:
        """Count a task as started. Returns ``False``, and counts nothing, if a limit is reached."""
        scopes = list(self._scopes(row))
        if not all(self._has_room(limit, scope) for limit, scope in scopes):
            return False
        self._at_work.update({scope for _, scope in scopes})
        rates = {(*scope, one.period_seconds) for one, scope in scopes if one.rate is not None}
        for rate in rates:
            self._data.starts.setdefault(rate, []).append(self._now)
        return True

    def _has_room(self, limit: Limit, scope: Scope) -> bool:
        if limit.concurrency is not None and self._at_work[scope] >= limit.concurrency:
            return False
        if limit.count is None or limit.period_seconds is None:
            return True
        oldest = self._now - timedelta(seconds=limit.period_seconds)
        rate = (*scope, limit.period_seconds)
        # Drop the starts that no longer count, also after the clock was set back.
        counted = [at for at in self._data.starts.get(rate, ()) if oldest < at <= self._now]
        if counted:
            self._data.starts[rate] = counted
        else:
            self._data.starts.pop(rate, None)
        return len(counted) < limit.count

    def _scopes(self, row: TaskRow) -> Iterator[tuple[Limit, Scope]]:
        """Yield the limits that apply to a task, with what each of them counts."""
        for limit in self._limits:
            if limit.agent is None:
                yield limit, ("tenant",)
            elif limit.agent == row.agent and not limit.per_key:
                yield limit, ("agent", row.agent)
            elif limit.agent == row.agent and row.key:
                yield limit, ("key", row.agent, row.key)
