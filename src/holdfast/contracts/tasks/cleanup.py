"""What must not outlive a task."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.contracts.tasks.scope import LedgerCalls, context_key
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
from holdfast.values.checks import check_count, check_id, check_ids, check_seconds


class CleanupCalls(LedgerCalls, CleanupLedger):
    """``CleanupLedger`` on any engine."""

    async def add_cleanup(
        self, lease: Lease, kind: CleanupKind, ref: str, *, agent: str = ""
    ) -> None:
        """Store a mark of the leased task; the same again changes nothing."""
        mark = check_mark(check_lease(lease).task_id, kind, ref, agent)
        await self._storage.add_cleanup(lease, mark)

    async def claim_cleanup(
        self, *, limit: int = 100, retry_seconds: float = RETRY_SECONDS
    ) -> list[CleanupMark]:
        """Take up to ``limit`` due marks, the longest due first; each is due again later."""
        most, later = check_count("limit", limit), check_seconds("retry_seconds", retry_seconds)
        return await self._storage.claim_cleanup(most, later)

    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """The due marks of one task, claimed or not; ``[]`` while it is live."""
        return await self._storage.list_cleanup(check_id("task_id", task_id))

    async def list_context_cleanup(self, context_id: str, *, owner: str = "") -> list[CleanupMark]:
        """The due marks of all tasks that a context has or had, claimed or not."""
        return await self._storage.list_context_cleanup(context_key(context_id, owner))

    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Mark blobs as files of the task's artifacts: due when the task is removed."""
        task = check_id("task_id", task_id)
        return await self._storage.keep_files(task, check_ids("refs", refs))

    async def delete_cleanup(self, marks: Sequence[CleanupMark]) -> int:
        """Delete marks that were carried out, all of one task; how many there were."""
        given = check_marks(marks)
        return await self._storage.delete_cleanup(given[0].task_id, given) if given else 0
