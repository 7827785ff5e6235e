"""Adopted tasks of the ledger on Postgres, which another system runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, assert_never

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_task
from holdfast.engines.postgres.tasks.view import LedgerView, message_columns
from holdfast.spi.tasks.adopted import AdoptedStorage, Adoption, StoredReport, StoredStatus
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage
from holdfast.values.codec import encode_json

_SQL = load("ledger_adopted")


class _Row(NamedTuple):
    """A report as columns, in the order of the function's parameters."""

    kind: str
    state: str | None = None
    note: str | None = None
    at: datetime | None = None
    metadata: str | None = None
    message_id: str | None = None
    message_at: datetime | None = None
    body: str | None = None
    digest: str | None = None
    artifact_id: str | None = None
    append: bool | None = None
    last_chunk: bool | None = None


class PostgresAdopted(LedgerView, AdoptedStorage):
    """Stores adopted tasks, which another system runs, and the reports about them.

    A repeated ``adopt`` fails, and so does a repeated ``record`` for the same version. So neither
    is retried after a lost answer.
    """

    async def adopt(self, adoption: Adoption) -> TaskSnapshot:
        """Store a task that another system runs, and its reports."""
        row = await self._engine.fetchrow(
            _SQL["adopt"],
            *(self._tenant, adoption.task_id, adoption.owner, adoption.session_id),
            *(str(adoption.agent), adoption.metadata),
            *_columns(adoption.reports),
            safe=False,
        )
        return to_task(row)

    async def record(
        self, key: TaskKey, reports: Sequence[StoredReport], expected_version: int | None
    ) -> int:
        """Store reports if the task has the expected version. Returns the new version."""
        version: int = await self._engine.fetchval(
            _SQL["record"], self._tenant, *key, expected_version, *_columns(reports), safe=False
        )
        return version

    async def delete_task(self, key: TaskKey) -> bool:
        """Delete a task with all its data. Returns whether it existed."""
        found: bool = await self._engine.fetchval(_SQL["delete"], self._tenant, *key, safe=False)
        return found


def _columns(reports: Sequence[StoredReport]) -> list[list[object]]:
    rows = [_row(report) for report in reports]
    return [[row[at] for row in rows] for at in range(len(_Row._fields))]


def _row(report: StoredReport) -> _Row:
    match report:
        case StoredStatus():
            return _Row(
                "status",
                report.state.value,
                encode_json(report.note),
                report.at,
                report.metadata,
                *message_columns(report.message),
            )
        case StoredMessage():
            return _Row("message", None, None, None, None, *message_columns(report))
        case StoredChunk():
            return _Row(
                "chunk",
                note=encode_json(report.name),
                metadata=report.metadata,
                body=report.parts,
                artifact_id=report.artifact_id,
                append=report.append,
                last_chunk=report.last_chunk,
            )
        case _ as never:
            assert_never(never)
