"""The timelines of the ledger on Postgres, and the feedback on tasks."""

from __future__ import annotations

from contextlib import AbstractContextManager

from holdfast.engines.postgres.listener import Bell, Listener
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_event, to_feedback, to_task
from holdfast.engines.postgres.tasks.view import LedgerView
from holdfast.spi.tasks.records import Extent, StoredEvent, TaskKey
from holdfast.spi.tasks.stored import StoredFeedback
from holdfast.spi.tasks.timeline import AuditStorage, Timeline
from holdfast.values.codec import encode_json
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import TaskRecord

_SQL = load("ledger_audit")
_BATCH, _BATCH_BYTES = 100, 1 << 20
"""How much a follower reads at a time: at most this many events, and this many bytes."""


class PostgresAudit(LedgerView, AuditStorage):
    """Reads the timelines of tasks, and stores feedback on tasks."""

    async def events(
        self, key: TaskKey, after: int, limit: int | None, max_bytes: int | None
    ) -> list[StoredEvent]:
        """Return the events of a task with numbers above ``after``."""
        within = () if max_bytes is None else (max_bytes,)
        rows = await self._engine.fetch(
            _SQL["events_within"] if within else _SQL["events"],
            *(self._tenant, *key, after, limit, *within),
            safe=True,
        )
        return [to_event(row) for row in rows]

    async def next_events(self, key: TaskKey, after: int) -> Timeline | None:
        """Return a batch of events with numbers above ``after``; ``None`` if there is no task."""
        rows = await self._engine.fetch(
            _SQL["follow"], self._tenant, *key, after, _BATCH, _BATCH_BYTES, safe=True
        )
        if not rows:
            return None
        events = [to_event(row) for row in rows if row["seq"] is not None]
        return Timeline(TaskState(rows[0]["out_state"]), rows[0]["out_version"], events)

    def following(self, task_id: str) -> AbstractContextManager[Bell]:
        """Subscribe to the changes of a task."""
        return self._engine.singleton(Listener).bell(f"{self._tenant}\ntask\n{task_id}")

    async def replay(self, key: TaskKey, until: int, extent: Extent) -> TaskRecord | None:
        """Return a task as it was after the event ``until``, or ``None``."""
        row = await self._engine.fetchrow(
            _SQL["replay"],
            *(self._tenant, *key, until, extent.history_length, extent.artifacts),
            safe=True,
        )
        return None if row is None else to_task(row).load()

    async def append_feedback(self, key: TaskKey, feedback: StoredFeedback) -> StoredFeedback:
        """Store feedback, unless it is stored already."""
        row = await self._engine.fetchrow(
            _SQL["append_feedback"],
            *(self._tenant, *key, feedback.id, encode_json(feedback.text)),
            *(feedback.rating, feedback.metadata, feedback.digest()),
            safe=True,
        )
        return to_feedback(row)

    async def list_feedback(self, key: TaskKey) -> list[StoredFeedback]:
        """Return the feedback on a task, in order."""
        rows = await self._engine.fetch(_SQL["list_feedback"], self._tenant, *key, safe=True)
        return [to_feedback(row) for row in rows]
