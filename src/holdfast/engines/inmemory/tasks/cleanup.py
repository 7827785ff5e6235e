"""The cleanup marks of the in-memory ledger: data outside the ledger to delete with a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from holdfast.engines.inmemory.tasks.data import MarkRow, TaskRow
from holdfast.engines.inmemory.tasks.view import LedgerView
from holdfast.spi.tasks.cleanup import CleanupStorage
from holdfast.spi.tasks.records import ContextKey
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.records import Lease


class InMemoryCleanup(LedgerView, CleanupStorage):
    """Stores cleanup marks: which data outside the ledger is to be deleted with a task."""

    async def add_cleanup(self, lease: Lease, mark: CleanupMark) -> None:
        """Store a cleanup mark, unless it is stored already."""
        self._mark(self._held(lease), mark)

    def _mark(self, row: TaskRow, mark: CleanupMark) -> None:
        rows = self._data.cleanup.setdefault(row.id, {})
        rows.setdefault((mark.kind, mark.ref), MarkRow(mark, row.owner, row.session_id))

    async def claim_cleanup(self, limit: int, retry_seconds: float) -> list[CleanupMark]:
        """Claim due cleanup marks, the longest due first."""
        now = self._engine.now()
        due = [row for due_at, row in self._due() if due_at <= now][:limit]
        for row in due:
            row.due_at = now + timedelta(seconds=retry_seconds)
        return [row.mark for row in due]

    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """Return the due cleanup marks of a task."""
        return [row.mark for _, row in self._due([task_id])]

    async def list_context_cleanup(self, key: ContextKey) -> list[CleanupMark]:
        """Return the due cleanup marks of all tasks that a context has or had."""
        return [row.mark for _, row in self._due() if (row.owner, row.session_id) == key]

    def _due(self, task_ids: Iterable[str] | None = None) -> list[tuple[datetime, MarkRow]]:
        """Return the due cleanup marks of these tasks, or of all, the earliest first."""
        found = [
            (row.due_at, row)
            for task_id in (self._data.cleanup_due if task_ids is None else task_ids)
            for row in self._data.cleanup.get(task_id, {}).values()
            if row.due_at is not None
        ]
        return sorted(found, key=lambda one: (one[0], _order(one[1].mark)))

    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Store a cleanup mark for each file of a task; ``False`` if there is no such task."""
        row = self._find(task_id, None)
        if row is None:
            return False
        for ref in refs:
            self._mark(row, CleanupMark(task_id, "artifact", ref))
        return True

    async def delete_cleanup(self, task_id: str, marks: Sequence[CleanupMark]) -> int:
        """Delete cleanup marks of one task. Returns how many existed."""
        rows = self._data.cleanup.get(task_id, {})
        count = sum(rows.pop((mark.kind, mark.ref), None) is not None for mark in marks)
        if all(row.due_at is None for row in rows.values()):
            self._data.cleanup_due.pop(task_id, None)
        if not rows:
            self._data.cleanup.pop(task_id, None)
        return count


def _order(mark: CleanupMark) -> tuple[str, str, str]:
    return mark.task_id, mark.kind, mark.ref
