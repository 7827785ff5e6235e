"""The feed of state changes of tasks, on Postgres."""

from __future__ import annotations

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_agent
from holdfast.engines.postgres.tasks.view import LedgerView
from holdfast.spi.tasks.changes import ChangePosition, ChangeStorage, FoundChanges
from holdfast.values.lifecycle import Actor, TaskState
from holdfast.values.tasks.changes import TaskChange

_SQL = load("ledger_changes")


class PostgresChanges(LedgerView, ChangeStorage):
    """The feed of state changes; a position is a transaction id, a task id and an event number."""

    async def changes(self, owner: str | None, after: ChangePosition, limit: int) -> FoundChanges:
        """Read the changes whose transactions are older than every open transaction."""
        rows = await self._engine.fetch(
            _SQL["changes"],
            *(self._tenant, owner, str(after.place), after.task_id, after.seq, limit),
            safe=True,
        )
        found = [
            TaskChange(
                row["task_id"],
                row["seq"],
                None if row["from_state"] is None else TaskState(row["from_state"]),
                TaskState(row["to_state"]),
                row["at"],
                Actor(row["actor"]),
                to_agent(row["agent"]),
                row["context_id"],
                row["owner"],
                row["by_name"] or "",
            )
            for row in rows
            if row["shown"]
        ]
        last = after
        if rows:
            last = ChangePosition(rows[-1]["place"], rows[-1]["task_id"], rows[-1]["seq"])
        return FoundChanges(found, last, len(rows))

    async def last_change(self) -> ChangePosition:
        """Return the number of the oldest open transaction, as a position in the feed."""
        return ChangePosition(await self._engine.fetchval(_SQL["end"], self._tenant, safe=True))
