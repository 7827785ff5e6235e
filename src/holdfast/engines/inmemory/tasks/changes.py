"""The feed of state changes of tasks, in memory."""

from __future__ import annotations

from bisect import bisect_right

from holdfast.engines.inmemory.tasks.view import LedgerView
from holdfast.spi.tasks.changes import ChangePosition, ChangeStorage, FoundChanges
from holdfast.values.tasks.changes import TaskChange
from holdfast.values.tasks.events import Transition


class InMemoryChanges(LedgerView, ChangeStorage):
    """The feed of state changes of tasks. A position in it is a counter."""

    async def changes(self, owner: str | None, after: ChangePosition, limit: int) -> FoundChanges:
        """Read changes after a position."""
        begin = bisect_right(self._data.changes, after)
        read = self._data.changes[begin : begin + limit]
        found = [
            change
            for one in read
            if (change := self._change(one)) is not None and owner in (None, change.owner)
        ]
        return FoundChanges(found, read[-1] if read else after, len(read))

    async def last_change(self) -> ChangePosition:
        """Return the position of the last change."""
        return self._data.changes[-1] if self._data.changes else ChangePosition()

    def _change(self, one: ChangePosition) -> TaskChange | None:
        row = self._data.tasks.get(one.task_id)
        # A deleted task may have come back under its id: adopted ones have ids of their clients.
        event = row.events[one.seq - 1] if row and one.seq <= len(row.events) else None
        if row is None or event is None or not isinstance(event.body, Transition):
            return None
        return TaskChange(
            row.id,
            one.seq,
            event.body.from_state,
            event.body.to_state,
            event.at,
            event.by,
            row.agent,
            row.session_id,
            row.owner,
            event.by_name,
        )
