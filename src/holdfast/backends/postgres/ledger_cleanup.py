"""The cleanup marks of the ledger on Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.backends.postgres.ledger_view import LedgerView
from holdfast.backends.postgres.queries import load
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

_SQL = load("ledger_cleanup")


class PostgresCleanup(LedgerView, CleanupLedger):
    """``CleanupLedger`` on Postgres."""

    async def add_cleanup(
        self, lease: Lease, kind: CleanupKind, ref: str, *, agent: str = ""
    ) -> None:
        """Store a mark of the leased task; the same again changes nothing."""
        mark = check_mark(check_lease(lease).task_id, kind, ref, agent)
        await self._engine.fetch(
            _SQL["add"],
            *(self._tenant, lease.task_id, lease.fence, mark.kind, mark.ref, mark.agent),
            safe=True,
        )

    async def claim_cleanup(
        self, *, limit: int = 100, retry_seconds: float = RETRY_SECONDS
    ) -> list[CleanupMark]:
        """Take up to ``limit`` due marks, the longest due first; each is due again later."""
        check_count("limit", limit)
        check_seconds("retry_seconds", retry_seconds)
        # A lost answer is no loss: what it named is due again after ``retry_seconds``.
        rows = await self._engine.fetch(
            _SQL["claim"], self._tenant, limit, float(retry_seconds), safe=True
        )
        return [_to_mark(row) for row in rows]

    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """The due marks of one task, claimed or not; ``[]`` while it is live."""
        rows = await self._engine.fetch(
            _SQL["of_task"], self._tenant, check_id("task_id", task_id), safe=True
        )
        return [_to_mark(row) for row in rows]

    async def list_context_cleanup(self, context_id: str, *, owner: str = "") -> list[CleanupMark]:
        """The due marks of all tasks that a context has or had, claimed or not."""
        rows = await self._engine.fetch(
            _SQL["of_context"],
            *(self._tenant, check_optional_id("owner", owner), check_id("context_id", context_id)),
            safe=True,
        )
        return [_to_mark(row) for row in rows]

    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Mark blobs as files of the task's artifacts: due when the task is removed."""
        check_id("task_id", task_id)
        kept: bool = await self._engine.fetchval(
            _SQL["keep_files"], self._tenant, task_id, check_ids("refs", refs), safe=True
        )
        return kept

    async def delete_cleanup(self, marks: Sequence[CleanupMark]) -> int:
        """Delete marks that were carried out, all of one task; how many there were."""
        given = check_marks(marks)
        if not given:
            return 0
        count: int = await self._engine.fetchval(
            _SQL["delete"],
            *(self._tenant, given[0].task_id),
            [mark.kind for mark in given],
            [mark.ref for mark in given],
            safe=False,
        )
        return count


def _to_mark(row: Any) -> CleanupMark:
    return CleanupMark(row["task_id"], row["kind"], row["ref"], row["agent"])
