"""Forks on Postgres: new tasks that continue from the stored steps of another task."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.view import LedgerView, message_columns
from holdfast.spi.tasks.forks import ForkDraft, ForkStorage
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot

_SQL = load("ledger_forks")


class PostgresForks(LedgerView, ForkStorage):
    """Stores forks: new tasks that continue from the stored steps of another task."""

    async def fork(self, key: TaskKey, draft: ForkDraft) -> TaskSnapshot:
        """Store a new task with the steps, messages and artifacts of another task."""
        row = await self._engine.fetchrow(
            _SQL["fork"],
            *(self._tenant, *key, draft.id, draft.new_session_id, draft.at_seq, draft.failed),
            *(draft.submit_key, draft.digest, *message_columns(draft.message), draft.by),
            safe=True,
        )
        return self._queued(row)

    async def held_elsewhere(self, task_id: str, refs: Sequence[str]) -> Collection[str]:
        """Return those of the refs that another task still uses."""
        rows = await self._engine.fetch(
            _SQL["held_elsewhere"], self._tenant, task_id, list(refs), safe=True
        )
        return {row["ref"] for row in rows}
