"""Tasks of the ledger on Postgres that other tasks submit."""

from __future__ import annotations

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_task
from holdfast.engines.postgres.tasks.view import (
    LedgerView,
    message_columns,
    moment,
    step_columns,
)
from holdfast.spi.tasks.children import ChildStorage
from holdfast.spi.tasks.clients import TaskListing
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.codec import encode_json
from holdfast.values.errors import NotFoundError
from holdfast.values.tasks.records import Lease

_SQL = load("ledger_children")
_MOST = (1 << 63) - 1


class PostgresChildren(LedgerView, ChildStorage):
    """Stores child tasks, which a running task submits."""

    async def submit_child(self, lease: Lease, step: StepDraft, draft: Draft) -> TaskSnapshot:
        """Store a child and the step that names it, unless they are stored already."""
        row = await self._engine.fetchrow(
            _SQL["submit_child"],
            *(self._tenant, lease.task_id, lease.fence),
            *(*step_columns(step.key), step.result, encode_json(step.digest)),
            *(draft.id, draft.session_id, draft.new_session_id, str(draft.agent)),
            *(draft.metadata, draft.max_attempts, *moment(draft.run_after)),
            *message_columns(draft.message),
            safe=True,
        )
        if row is None:
            raise NotFoundError("task", str(step.key))
        return self._queued(row)

    async def children(self, key: TaskKey, after: str, limit: int) -> TaskListing:
        """Return the children of a task, by id."""
        rows = await self._engine.fetch(
            _SQL["children"],
            *(self._tenant, *key, after, min(limit + 1, _MOST) if limit else 0),
            safe=True,
        )
        return TaskListing(
            [to_task(row) for row in rows[:limit]], more=len(rows) > limit > 0, total=None
        )

    async def cancel_tree(self, key: TaskKey, note: str, by: str = "") -> TaskSnapshot:
        """Cancel a task and all its descendants. Returns the task."""
        row = await self._engine.fetchrow(
            _SQL["cancel_tree"], self._tenant, *key, encode_json(note), by, safe=True
        )
        return self._queued(row)
