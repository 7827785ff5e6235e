"""Schedules: tasks that are submitted at the times (ticks) of a cron expression."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.values.content import ChatMessage
from holdfast.values.identity import AgentId

MISSED_LIMIT = 100
"""For how many missed ticks ``missed="all"`` submits tasks, by default."""
MAX_MISSED_LIMIT = 1000
SCHEDULE_ID, SCHEDULED_AT = "schedule_id", "scheduled_at"
"""Keys in the metadata of a scheduled task, which no client of a service may set."""
GRACE_SECONDS = 60.0
"""How late a tick may be before it counts as missed."""


class Missed(StrEnum):
    """What happens to ticks at which no worker ran.

    >>> Missed("once")
    <Missed.ONCE: 'once'>
    """

    SKIP = "skip"
    """A tick that is more than ``grace_seconds`` late is skipped."""

    ONCE = "once"
    """However many ticks were missed, the last one makes a task."""

    ALL = "all"
    """Each of the last ``missed_limit`` ticks makes a task."""


@dataclass(slots=True)
class ScheduleRecord:
    """A schedule, and when it next makes a task.

    ::

        schedule = await state.schedules.get("daily-report")
        print(schedule.next_run_at)
    """

    id: str
    cron: str
    timezone: str
    agent: AgentId
    message: ChatMessage
    """What each task begins with; each gets a copy under a new id."""

    created_at: datetime
    updated_at: datetime
    owner: str = ""
    session_id: str = ""
    """The context of all its tasks; if empty, each task has a new one."""

    metadata: dict[str, Any] = field(default_factory=dict)
    missed: Missed = Missed.ONCE
    missed_limit: int = MISSED_LIMIT
    grace_seconds: float = GRACE_SECONDS
    max_attempts: int = 5
    paused: bool = False
    version: int = 1
    next_run_at: datetime | None = None
    """``None`` while it is paused, and if no tick comes in the next 50 years."""

    last_run_at: datetime | None = None
    """The tick of its last task."""

    last_task_id: str = ""
