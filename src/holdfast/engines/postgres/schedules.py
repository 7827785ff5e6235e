"""Schedules, on Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_task
from holdfast.engines.postgres.tasks.work import Doorbell, requests_topic
from holdfast.spi.schedules import (
    BELL,
    DueSchedules,
    ScheduleDraft,
    ScheduleKey,
    ScheduleRun,
    ScheduleStorage,
    StoredSchedule,
    no_schedule,
)
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.values.identity import AgentId
from holdfast.values.schedules import Missed

_SQL = load("schedules")


class PostgresSchedules(ScheduleStorage):
    """The schedules of one tenant, in a table in the database of the tasks.

    ::

        schedules = PostgresSchedules(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def put(self, draft: ScheduleDraft, *, replace: bool, most: int) -> StoredSchedule:
        """Store a schedule and return it; ``replace`` permits to replace an existing one."""
        row = await self._engine.fetchrow(
            _SQL["put"],
            *(self._tenant, draft.owner, draft.id, draft.uid, draft.cron, draft.timezone),
            *(str(draft.agent), draft.message, draft.session_id, draft.metadata),
            *(str(draft.missed), draft.missed_limit, draft.grace_seconds, draft.max_attempts),
            *(draft.digest, replace, most),
            safe=True,
        )
        return self._changed(row)

    async def get(self, key: ScheduleKey) -> StoredSchedule | None:
        """Return a schedule, or ``None``."""
        row = await self._engine.fetchrow(_SQL["get"], self._tenant, *key, safe=True)
        return None if row is None else _to_schedule(row)

    async def list_schedules(
        self, owner: str | None, after: ScheduleKey | None, limit: int
    ) -> Sequence[StoredSchedule]:
        """Return a page of schedules, ordered by owner and id."""
        args = (self._tenant, owner, *(after or (None, "")), limit)
        return [
            _to_schedule(row) for row in await self._engine.fetch(_SQL["list"], *args, safe=True)
        ]

    async def set_paused(self, key: ScheduleKey, *, paused: bool) -> StoredSchedule:
        """Pause or resume a schedule, and return it."""
        # Not retried after a lost answer: it might undo what another client did meanwhile.
        row = await self._engine.fetchrow(
            _SQL["set_paused"], self._tenant, *key, paused, safe=False
        )
        if row is None:
            raise no_schedule(key.schedule_id)
        return self._changed(row)

    async def delete(self, key: ScheduleKey) -> bool:
        """Delete a schedule. Returns whether it existed."""
        # Not retried after a lost answer: the second try would return that there was none.
        return bool(await self._engine.fetchval(_SQL["delete"], self._tenant, *key, safe=False))

    async def due(self, limit: int) -> DueSchedules:
        """Return schedules whose next run is due."""
        rows = await self._engine.fetch(_SQL["due"], self._tenant, limit, safe=True)
        return DueSchedules(
            rows[0]["now"], [_to_schedule(row) for row in rows if row["id"] is not None]
        )

    async def defer(self, schedule: StoredSchedule, seconds: float) -> None:
        """Postpone the next run of a schedule by ``seconds``, for example after an error."""
        draft = schedule.draft
        await self._engine.fetch(
            _SQL["defer"],
            *(self._tenant, draft.owner, draft.id, draft.uid, schedule.version, seconds),
            safe=True,
        )

    async def run(self, run: ScheduleRun) -> list[TaskSnapshot]:
        """Submit the tasks of a run and advance the schedule, in one transaction."""
        drafts = run.drafts
        said = drafts[0].message if drafts else None
        rows = await self._engine.fetch(
            _SQL["run"],
            *(self._tenant, *run.key, run.uid, run.version),
            *(run.until, run.next_at, run.last_run_at),
            [draft.id for draft in drafts],
            [draft.new_session_id for draft in drafts],
            [draft.metadata for draft in drafts],
            [draft.submit_key for draft in drafts],
            [draft.digest() for draft in drafts],
            [draft.message.id for draft in drafts],
            said and said.created_at,
            said and said.digest(),
            # After a lost answer the tasks are there, and a second try finds nothing to run.
            safe=True,
        )
        if rows:
            self._engine.singleton(Doorbell).ring()
        return [to_task(row) for row in rows]

    def _changed(self, row: Any) -> StoredSchedule:
        self._engine.singleton(Doorbell).ring(requests_topic(BELL))
        return _to_schedule(row)


def _to_schedule(row: Any) -> StoredSchedule:
    draft = ScheduleDraft(
        row["id"],
        row["owner"],
        row["cron"],
        row["timezone"],
        AgentId.parse(row["agent"]),
        row["message"],
        row["context_id"],
        row["metadata"],
        Missed(row["missed"]),
        row["missed_limit"],
        row["grace_seconds"],
        row["max_attempts"],
        row["digest"],
        row["uid"],
    )
    return StoredSchedule(
        draft,
        row["version"],
        row["paused"],
        row["decided_until"],
        row["created_at"],
        row["updated_at"],
        row["last_run_at"],
        row["last_task_id"],
    )
