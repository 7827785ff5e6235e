"""Operations of operators on many tasks, in memory."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import islice

from holdfast.engines.inmemory.tasks.client import InMemoryClients, first_of, fits
from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.spi.tasks.clients import TaskFilter
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.operations import RETRY_KEY, CountBy, ManyQuery, OperationStorage
from holdfast.spi.tasks.records import TaskKey
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.tasks.operations import ManyTasks, TaskCounts, WorkerRecord


class InMemoryOperations(InMemoryClients, OperationStorage):
    """Counts tasks, lists workers, and cancels, pauses or retries many tasks."""

    async def counts(self, by: CountBy, wanted: TaskFilter, limit: int) -> TaskCounts:
        """Count the matching tasks by state or by agent; at most ``limit`` of each."""
        rows = (row for row in self._data.tasks.values() if fits(row, wanted))
        found = list(islice(rows, limit + 1))
        names = [str(row.state if by == "state" else row.agent) for row in found[:limit]]
        return TaskCounts(dict(sorted(Counter(names).items())), capped=len(found) > limit)

    async def versions(self, owner: str | None, limit: int) -> dict[str, int]:
        """Return the ids and versions of the ``limit`` tasks that changed last."""
        rows = [row for row in self._data.tasks.values() if owner in (None, row.owner)]
        rows.sort(key=lambda row: (row.updated_at, row.id), reverse=True)
        return {row.id: row.version for row in rows[:limit]}

    async def workers(self, owner: str | None) -> list[WorkerRecord]:
        """Return the workers that hold tasks."""
        held: dict[str, list[TaskRow]] = {}
        for row in self._data.tasks.values():
            if row.state is TaskState.WORKING and row.worker and owner in (None, row.owner):
                held.setdefault(row.worker, []).append(row)
        return [_worker(name, held[name]) for name in sorted(held)]

    async def many(self, query: ManyQuery) -> ManyTasks:
        """Apply an operation to the matching tasks, without an await in between."""
        found = sorted(
            (
                row
                for row in self._data.tasks.values()
                if fits(row, query.wanted) and self._may(row, query)
            ),
            key=lambda row: row.id,
        )
        rows, more = found[: query.limit], len(found) > query.limit
        made: list[str] = []
        if not query.dry_run:
            for row, ids in zip(rows, query.new_ids or [("", "")] * len(rows), strict=False):
                if query.what == "retry":
                    made.append(await self._again(row, *ids, query.by))
                else:
                    await self.request(TaskKey(row.id, None), query.what, query.note, query.by)
        return ManyTasks([row.id for row in rows], tuple(made), more=more, dry_run=query.dry_run)

    def _may(self, row: TaskRow, query: ManyQuery) -> bool:
        match query.what:
            case "cancel":
                return row.state not in TERMINAL
            case "pause":
                return row.state not in TERMINAL and not row.adopted
            case "retry":
                retried = (row.owner, RETRY_KEY + row.id) in self._data.keys
                return row.state in TERMINAL and not row.adopted and not retried

    async def _again(self, row: TaskRow, task_id: str, message_id: str, by: str) -> str:
        said = first_of(row)
        payload = said.payload if said else ""
        draft = Draft(
            row.agent,
            StoredMessage(message_id, self._engine.now(), payload),
            session_id=row.session_id,
            owner=row.owner,
            metadata=row.metadata,
            submit_key=RETRY_KEY + row.id,
            max_attempts=row.max_attempts,
            retry_of=row.id,
            priority=row.priority,
            key=row.key,
            id=task_id,
            by=by,
        )
        return (await self.submit(draft)).task.id


def _worker(name: str, rows: list[TaskRow]) -> WorkerRecord:
    ends = [row.lease_expires_at for row in rows if row.lease_expires_at is not None]
    beats = [
        row.lease_expires_at - timedelta(seconds=row.lease_seconds)
        for row in rows
        if row.lease_expires_at is not None and row.lease_seconds
    ]
    ids, version = sorted(row.id for row in rows), max(row.app_version for row in rows)
    return WorkerRecord(name, ids, max(beats, default=None), min(ends), version)
