"""Which tasks a schedule submits at its ticks, and a stored schedule as agents read it."""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.contracts.cron import Cron
from holdfast.spi.schedules import ScheduleKey, ScheduleRun, StoredSchedule
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.codec import decode_json, encode_object
from holdfast.values.ids import new_id
from holdfast.values.owners import RESERVED
from holdfast.values.schedules import SCHEDULE_ID, SCHEDULED_AT, Missed, ScheduleRecord


def load_schedule(stored: StoredSchedule) -> ScheduleRecord:
    """Return a stored schedule as the record that agents read.

    ::

        schedule = load_schedule(await storage.get(key))
    """
    draft = stored.draft
    cron = Cron(draft.cron, draft.timezone)
    return ScheduleRecord(
        draft.id,
        draft.cron,
        draft.timezone,
        draft.agent,
        StoredMessage(draft.uid, stored.created_at, draft.message).load(),
        stored.created_at,
        stored.updated_at,
        owner=draft.owner,
        session_id=draft.session_id,
        metadata=decode_json(draft.metadata),
        missed=draft.missed,
        missed_limit=draft.missed_limit,
        grace_seconds=draft.grace_seconds,
        max_attempts=draft.max_attempts,
        paused=stored.paused,
        version=stored.version,
        next_run_at=None if stored.paused else cron.next_tick(stored.after),
        last_run_at=stored.last_run_at,
        last_task_id=stored.last_task_id,
    )


def run_of(stored: StoredSchedule, now: datetime) -> ScheduleRun:
    """Return the run of a schedule: the tasks for its ticks until now, and its next tick.

    ::

        tasks = await storage.run(run_of(schedule, now))
    """
    draft, cron = stored.draft, Cron(stored.draft.cron, stored.draft.timezone)
    # If the clock was set back, no tick is handled again.
    until = max(now, stored.after)
    begin, most = stored.after, draft.missed_limit
    if draft.missed is Missed.ONCE:
        most = 1
    elif draft.missed is Missed.SKIP:
        begin = max(begin, until - timedelta(seconds=draft.grace_seconds, microseconds=1))
    ticks = cron.last_ticks(begin, until, most)
    return ScheduleRun(
        ScheduleKey(draft.owner, draft.id),
        draft.uid,
        stored.version,
        until,
        cron.next_tick(until),
        ticks[-1] if ticks else None,
        [_task(stored, tick, now) for tick in ticks],
    )


def _task(stored: StoredSchedule, tick: datetime, now: datetime) -> Draft:
    draft = stored.draft
    facts = {SCHEDULE_ID: draft.id, SCHEDULED_AT: tick.isoformat()}
    return Draft(
        draft.agent,
        StoredMessage(new_id(), now, draft.message),
        session_id=draft.session_id,
        owner=draft.owner,
        metadata=encode_object(decode_json(draft.metadata) | facts, field="metadata"),
        submit_key=f"{RESERVED}schedule/{draft.uid}/{tick.isoformat()}",
        max_attempts=draft.max_attempts,
    )
