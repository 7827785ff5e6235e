"""The cleanup marks of the in-memory ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from holdfast.backends.inmemory.ledger_data import MarkRow, TaskRow
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_ids,
    check_optional_id,
    check_seconds,
)
from holdfast.kernel.storage.ledger_cleanup import (
    RETRY_SECONDS,
    CleanupKind,
    CleanupLedger,
    CleanupMark,
    check_mark,
    check_marks,
)
from holdfast.kernel.storage.ledger_input import check_lease
from holdfast.kernel.storage.ledger_records import Lease


class InMemoryCleanup(LedgerView, CleanupLedger):
    """``CleanupLedger`` in the process."""

    async def add_cleanup(
        self, lease: Lease, kind: CleanupKind, ref: str, *, agent: str = ""
    ) -> None:
        """Store a mark of the leased task; the same again changes nothing."""
        mark = check_mark(check_lease(lease).task_id, kind, ref, agent)
        self._mark(self._held(lease), mark)

    def _mark(self, row: TaskRow, mark: CleanupMark) -> None:
        rows = self._data.cleanup.setdefault(row.id, {})
        rows.setdefault((mark.kind, mark.ref), MarkRow(mark, row.owner, row.context_id))

    async def claim_cleanup(
        self, *, limit: int = 100, retry_seconds: float = RETRY_SECONDS
    ) -> list[CleanupMark]:
        """Take up to ``limit`` due marks, the longest due first; each is due again later."""
        check_count("limit", limit)
        now = self._engine.now()
        later = now + timedelta(seconds=check_seconds("retry_seconds", retry_seconds))
        due = [row for due_at, row in self._due() if due_at <= now][:limit]
        for row in due:
            row.due_at = later
        return [row.mark for row in due]

    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """The due marks of one task, claimed or not; ``[]`` while it is live."""
        check_id("task_id", task_id)
        return [row.mark for _, row in self._due([task_id])]

    async def list_context_cleanup(self, context_id: str, *, owner: str = "") -> list[CleanupMark]:
        """The due marks of all tasks that a context has or had, claimed or not."""
        key = check_optional_id("owner", owner), check_id("context_id", context_id)
        return [row.mark for _, row in self._due() if (row.owner, row.context_id) == key]

    def _due(self, task_ids: Iterable[str] | None = None) -> list[tuple[datetime, MarkRow]]:
        """The marks that are due some time, of some tasks or of all, in order."""
        found = [
            (row.due_at, row)
            for task_id in (self._data.cleanup_due if task_ids is None else task_ids)
            for row in self._data.cleanup.get(task_id, {}).values()
            if row.due_at is not None
        ]
        return sorted(found, key=lambda one: (one[0], _order(one[1].mark)))

    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Mark blobs as files of the task's artifacts: due when the task is removed."""
        marks = [check_mark(task_id, "artifact", ref) for ref in check_ids("refs", refs)]
        row = self._find(task_id, None)
        if row is None:
            return False
        for mark in marks:
            self._mark(row, mark)
        return True

    async def delete_cleanup(self, marks: Sequence[CleanupMark]) -> int:
        """Delete marks that were carried out, all of one task; how many there were."""
        count = 0
        for mark in check_marks(marks):
            rows = self._data.cleanup.get(mark.task_id, {})
            count += rows.pop((mark.kind, mark.ref), None) is not None
            if all(row.due_at is None for row in rows.values()):
                self._data.cleanup_due.pop(mark.task_id, None)
            if not rows:
                self._data.cleanup.pop(mark.task_id, None)
        return count


def _order(mark: CleanupMark) -> tuple[str, str, str]:
    return mark.task_id, mark.kind, mark.ref
