"""The cleanup marks of the ledger on Postgres: data outside the ledger to delete with a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.view import LedgerView
from holdfast.spi.tasks.cleanup import CleanupStorage
from holdfast.spi.tasks.records import ContextKey
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.records import Lease

_SQL = load("ledger_cleanup")


class PostgresCleanup(LedgerView, CleanupStorage):
    """Stores cleanup marks: which data outside the ledger is to be deleted with a task."""

    async def add_cleanup(self, lease: Lease, mark: CleanupMark) -> None:
        """Store a cleanup mark, unless it is stored already."""
        await self._engine.fetch(
            _SQL["add"],
            *(self._tenant, lease.task_id, lease.fence, mark.kind, mark.ref, mark.agent),
            safe=True,
        )

    async def claim_cleanup(self, limit: int, retry_seconds: float) -> list[CleanupMark]:
        """Claim due cleanup marks, the longest due first."""
        # Safe to repeat: the marks of a lost answer are due again after ``retry_seconds``.
        return await self._marks(_SQL["claim"], limit, float(retry_seconds))

    async def list_cleanup(self, task_id: str) -> list[CleanupMark]:
        """Return the due cleanup marks of a task."""
        return await self._marks(_SQL["of_task"], task_id)

    async def list_context_cleanup(self, key: ContextKey) -> list[CleanupMark]:
        """Return the due cleanup marks of all tasks that a context has or had."""
        return await self._marks(_SQL["of_context"], *key)

    async def _marks(self, sql: LiteralString, *given: Any) -> list[CleanupMark]:
        rows = await self._engine.fetch(sql, self._tenant, *given, safe=True)
        return [CleanupMark(*row) for row in rows]

    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Store a cleanup mark for each file of a task; ``False`` if there is no such task."""
        kept: bool = await self._engine.fetchval(
            _SQL["keep_files"], self._tenant, task_id, refs, safe=True
        )
        return kept

    async def delete_cleanup(self, task_id: str, marks: Sequence[CleanupMark]) -> int:
        """Delete cleanup marks of one task. Returns how many existed."""
        kinds, refs = [mark.kind for mark in marks], [mark.ref for mark in marks]
        count: int = await self._engine.fetchval(
            _SQL["delete"], self._tenant, task_id, kinds, refs, safe=False
        )
        return count
