"""Schedules, in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.tasks.data import Doorbell
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.spi.schedules import (
    BELL,
    DueSchedules,
    ScheduleDraft,
    ScheduleKey,
    ScheduleRun,
    ScheduleStorage,
    StoredSchedule,
    no_schedule,
    other_schedule,
    too_many_schedules,
)
from holdfast.spi.tasks.records import TaskSnapshot


@dataclass(slots=True)
class ScheduleRow:
    """A schedule, and when its next run is due; ``None`` if it has no further run."""

    stored: StoredSchedule
    next_at: datetime | None


@dataclass(slots=True)
class ScheduleData:
    """The schedules of one tenant."""

    rows: dict[ScheduleKey, ScheduleRow] = field(default_factory=dict)


class InMemorySchedules(ScheduleStorage):
    """Stores the schedules of one tenant in a dict.

    >>> schedules = InMemorySchedules(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._ledger = InMemoryLedger(engine, tenant=tenant)
        self._rows = engine.table(tenant, ScheduleData).rows

    async def put(self, draft: ScheduleDraft, *, replace: bool, most: int) -> StoredSchedule:
        """Store a schedule and return it; ``replace`` permits to replace an existing one."""
        key, now = ScheduleKey(draft.owner, draft.id), self._engine.now()
        row = self._rows.get(key)
        if row is None:
            if sum(one.owner == draft.owner for one in self._rows) >= most:
                raise too_many_schedules(draft.id, draft.owner, most)
            stored = StoredSchedule(draft, 1, False, now, now, now, None, "")  # noqa: FBT003
        elif row.stored.draft.digest == draft.digest:
            return row.stored
        elif not replace:
            raise other_schedule(draft.id)
        else:
            stored = _changed(row.stored, draft, now)
        return self._kept(key, stored)

    async def get(self, key: ScheduleKey) -> StoredSchedule | None:
        """Return a schedule, or ``None``."""
        row = self._rows.get(key)
        return None if row is None else row.stored

    async def list_schedules(
        self, owner: str | None, after: ScheduleKey | None, limit: int
    ) -> Sequence[StoredSchedule]:
        """Return a page of schedules, ordered by owner and id."""
        found = sorted(
            key
            for key in self._rows
            if owner in (None, key.owner) and (after is None or key > after)
        )
        return [self._rows[key].stored for key in found[:limit]]

    async def set_paused(self, key: ScheduleKey, *, paused: bool) -> StoredSchedule:
        """Pause or resume a schedule, and return it."""
        if key not in self._rows:
            raise no_schedule(key.schedule_id)
        stored, now = self._rows[key].stored, self._engine.now()
        if stored.paused == paused:
            return stored
        return self._kept(
            key,
            stored._replace(
                paused=paused,
                after=stored.after if paused else now,
                updated_at=now,
                version=stored.version + 1,
            ),
        )

    async def delete(self, key: ScheduleKey) -> bool:
        """Delete a schedule. Returns whether it existed."""
        return self._rows.pop(key, None) is not None

    async def due(self, limit: int) -> DueSchedules:
        """Return schedules whose next run is due."""
        now = self._engine.now()
        found = sorted(
            (row.next_at, key)
            for key, row in self._rows.items()
            if row.next_at is not None and row.next_at <= now and not row.stored.paused
        )
        return DueSchedules(now, [self._rows[key].stored for _, key in found[:limit]])

    async def defer(self, schedule: StoredSchedule, seconds: float) -> None:
        """Postpone the next run of a schedule by ``seconds``, for example after an error."""
        row = self._rows.get(ScheduleKey(schedule.draft.owner, schedule.draft.id))
        known = row and (row.stored.draft.uid, row.stored.version)
        if row is not None and known == (schedule.draft.uid, schedule.version):
            row.next_at = self._engine.now() + timedelta(seconds=seconds)

    async def run(self, run: ScheduleRun) -> list[TaskSnapshot]:
        """Submit the tasks of a run and advance the schedule, without an await in between."""
        row = self._rows.get(run.key)
        if row is None or (row.stored.draft.uid, row.stored.version) != (run.uid, run.version):
            return []
        made = [await self._ledger.submit(draft) for draft in run.drafts]
        row.next_at = run.next_at
        row.stored = row.stored._replace(
            after=run.until,
            version=run.version + 1,
            last_run_at=run.last_run_at or row.stored.last_run_at,
            last_task_id=made[-1].task.id if made else row.stored.last_task_id,
        )
        return made

    def _kept(self, key: ScheduleKey, stored: StoredSchedule) -> StoredSchedule:
        self._rows[key] = ScheduleRow(stored, self._engine.now())
        self._engine.table("", Doorbell).ring(BELL)
        return stored


def _changed(old: StoredSchedule, draft: ScheduleDraft, now: datetime) -> StoredSchedule:
    moved = (old.draft.cron, old.draft.timezone) != (draft.cron, draft.timezone)
    return old._replace(
        draft=replace(draft, uid=old.draft.uid),
        after=now if moved else old.after,
        updated_at=now,
        version=old.version + 1,
    )
