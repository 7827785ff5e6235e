"""A naive ``TurnLog``: one list of rows, each waiting, claimed or done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.kernel.core.errors import ConflictError
from holdfast.kernel.storage.turnlog import Backlog, ClaimedTurn, LogPosition, TurnEntry
from holdfast.testing.models.shared import Shared


class NaiveTurnLog:
    """Rows that are never removed; what was done an hour ago is no longer looked at."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.shared = shared
        self.tenant = tenant
        self.rows = shared.table("turn log")
        self.raised = shared.table("turn log positions")

    def _mine(self, state: str = "") -> list[dict[str, Any]]:
        return [
            row
            for row in self.rows
            if row["tenant"] == self.tenant and (not state or row["state"] == state)
        ]

    def _place(self, session_id: str) -> LogPosition:
        places = [LogPosition(1, 0)]
        places += [p for tenant, s, p in self.raised if (tenant, s) == (self.tenant, session_id)]
        places += [r["place"] for r in self._mine() if r["entry"].session_id == session_id]
        return max(places)

    def _find(self, entry: TurnEntry) -> dict[str, Any] | None:
        for row in self._mine():
            known = row["state"] != "done" or self.shared.now < row["at"] + timedelta(hours=1)
            same = (row["entry"].session_id, row["entry"].event_id) == (
                entry.session_id,
                entry.event_id,
            )
            if same and known:
                if row["entry"].payload != entry.payload:
                    raise ConflictError("event", entry.event_id)
                return row
        return None

    async def append(self, entry: TurnEntry) -> LogPosition:
        """A batch of one."""
        return (await self.append_many([entry]))[0]

    async def append_many(self, entries: list[TurnEntry]) -> list[LogPosition]:
        """Rows one by one; on a conflict the list is put back as it was."""
        before = list(self.rows)
        places = []
        try:
            for entry in entries:
                row = self._find(entry)
                if row is None:
                    last = self._place(entry.session_id)
                    row = {
                        "tenant": self.tenant,
                        "id": str(len(self.rows)),
                        "entry": entry,
                        "place": LogPosition(last.epoch, last.seq + 1),
                        "appended_at": self.shared.now,
                        "state": "waiting",
                        "at": self.shared.now,
                        "deliveries": 0,
                    }
                    self.rows.append(row)
                places.append(row["place"])
        except ConflictError:
            self.rows[:] = before
            raise
        return places

    async def claim(
        self, consumer: str, *, limit: int = 500, min_idle_seconds: float = 60
    ) -> list[ClaimedTurn]:
        """The idle rows, then the waiting ones."""
        del consumer  # who holds a row does not matter, only for how long
        idle = timedelta(seconds=min_idle_seconds)
        left = [row for row in self._mine("claimed") if row["at"] + idle <= self.shared.now]
        batch = (left + self._mine("waiting"))[:limit]
        for row in batch:
            row.update(state="claimed", at=self.shared.now, deliveries=row["deliveries"] + 1)
        return [
            ClaimedTurn(
                row["id"], row["entry"], row["place"], row["appended_at"], row["deliveries"]
            )
            for row in batch
        ]

    async def acknowledge(self, ids: list[str]) -> int:
        """Mark claimed rows as done."""
        done = [row for row in self._mine("claimed") if row["id"] in ids]
        for row in done:
            row.update(state="done", at=self.shared.now)
        return len(done)

    async def pending(self) -> Backlog:
        """Count."""
        waiting, claimed = self._mine("waiting"), self._mine("claimed")
        ages = [self.shared.now - row["appended_at"] for row in waiting + claimed]
        return Backlog(len(waiting), len(claimed), max(ages, default=timedelta()).total_seconds())

    async def advance(self, session_id: str, position: LogPosition) -> LogPosition:
        """One more place to be after."""
        self.raised.append((self.tenant, session_id, position))
        return self._place(session_id)
