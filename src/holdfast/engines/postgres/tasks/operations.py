"""Operations of operators on many tasks, on Postgres."""

from __future__ import annotations

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.view import LedgerView, filter_columns
from holdfast.engines.postgres.tasks.work import Doorbell, requests_topic
from holdfast.spi.tasks.clients import TaskFilter
from holdfast.spi.tasks.operations import CountBy, ManyQuery, OperationStorage
from holdfast.values.codec import encode_json
from holdfast.values.tasks.operations import ManyTasks, TaskCounts, WorkerRecord

_SQL = load("ledger_operations")


class PostgresOperations(LedgerView, OperationStorage):
    """Counts tasks, lists workers, and cancels, pauses or retries many tasks."""

    async def counts(self, by: CountBy, wanted: TaskFilter, limit: int) -> TaskCounts:
        """Count the matching tasks by state or by agent; at most ``limit`` of each."""
        rows = await self._engine.fetch(
            _SQL["counts"], self._tenant, *filter_columns(wanted), by, limit, safe=True
        )
        found = {row["name"]: row["found"] for row in rows if row["found"]}
        return TaskCounts(found, capped=any(row["capped"] for row in rows))

    async def versions(self, owner: str | None, limit: int) -> dict[str, int]:
        """Return the ids and versions of the ``limit`` tasks that changed last."""
        rows = await self._engine.fetch(_SQL["versions"], self._tenant, owner, limit, safe=True)
        return {row["id"]: row["version"] for row in rows}

    async def workers(self, owner: str | None) -> list[WorkerRecord]:
        """Return the workers that hold tasks."""
        rows = await self._engine.fetch(_SQL["workers"], self._tenant, owner, safe=True)
        return [
            WorkerRecord(
                row["worker"], row["ids"], row["beat_at"], row["expires_at"], row["version"]
            )
            for row in rows
        ]

    async def many(self, query: ManyQuery) -> ManyTasks:
        """Apply an operation to the matching tasks, in one statement."""
        wanted = (self._tenant, *filter_columns(query.wanted), query.what)
        if query.dry_run:
            rows = await self._engine.fetch(_SQL["find"], *wanted, query.limit + 1, safe=True)
            ids = [row["id"] for row in rows]
            return ManyTasks(ids[: query.limit], more=len(ids) > query.limit, dry_run=True)
        rows = await self._engine.fetch(
            _SQL["many"],
            *(*wanted, query.limit + 1, query.limit, encode_json(query.note)),
            [task_id for task_id, _ in query.new_ids],
            [message_id for _, message_id in query.new_ids],
            query.by,
            # Not retried after a lost answer: it would be for tasks that came meanwhile.
            safe=False,
        )
        done = [row for row in rows if row["out_id"] is not None]
        made = tuple(row["out_new_id"] for row in done if row["out_new_id"] is not None)
        bell = self._engine.singleton(Doorbell)
        if made:
            bell.ring()
        for worker in {row["out_worker"] for row in done} - {""}:
            bell.ring(requests_topic(worker))
        return ManyTasks([row["out_id"] for row in done], made, more=rows[0]["more"])
