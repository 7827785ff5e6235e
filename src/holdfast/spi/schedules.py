"""Schedules, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.values.errors import ConflictError, NotFoundError
from holdfast.values.identity import AgentId
from holdfast.values.schedules import Missed

BELL = "holdfast.schedules"
"""Workers wait for changes of schedules as if they were requests to a worker of this name."""


class ScheduleKey(NamedTuple):
    """The key of a schedule. Two owners may use the same id for different schedules."""

    owner: str
    schedule_id: str


@dataclass(frozen=True, slots=True)
class ScheduleDraft:
    """A checked schedule; its message and metadata are JSON text."""

    id: str
    owner: str
    cron: str
    timezone: str
    agent: AgentId
    message: str
    session_id: str
    metadata: str
    missed: Missed
    missed_limit: int
    grace_seconds: float
    max_attempts: int
    digest: str
    """The digest of all fields except the id and the owner."""

    uid: str
    """A new unique id: it differs from that of a deleted schedule with the same ``id``."""


class StoredSchedule(NamedTuple):
    """A schedule as it is stored.

    All ticks up to ``after`` have been handled. ``version`` grows with every change and run.
    """

    draft: ScheduleDraft
    version: int
    paused: bool
    after: datetime
    created_at: datetime
    updated_at: datetime
    last_run_at: datetime | None
    last_task_id: str


class DueSchedules(NamedTuple):
    """Schedules that may have a tick to run, and the current time by the engine's clock."""

    now: datetime
    schedules: Sequence[StoredSchedule]


class ScheduleRun(NamedTuple):
    """The ticks of a schedule up to ``until``: the tasks to submit, in order, and the next tick."""

    key: ScheduleKey
    uid: str
    version: int
    until: datetime
    next_at: datetime | None
    last_run_at: datetime | None
    drafts: Sequence[Draft]


def too_many_schedules(schedule_id: str, owner: str, most: int) -> ConflictError:
    """Return the error for a new schedule of an owner that has the maximum number.

    >>> str(too_many_schedules("daily", "ana", 1000))
    "owner 'ana' has 1000 schedules: delete one first"
    """
    return ConflictError(
        "schedule", schedule_id, f"owner {owner!r} has {most} schedules: delete one first"
    )


def other_schedule(schedule_id: str) -> ConflictError:
    """Return the error for a schedule whose id is stored with other content.

    >>> str(other_schedule("daily"))
    "schedule 'daily' is there with other content: use upsert to replace it"
    """
    text = f"schedule {schedule_id!r} is there with other content: use upsert to replace it"
    return ConflictError("schedule", schedule_id, text)


def no_schedule(schedule_id: str) -> NotFoundError:
    """Return the error for a schedule that is not there, or is another owner's.

    >>> no_schedule("daily").key
    'daily'
    """
    text = (
        f"schedule {schedule_id!r} was not found for this owner: `holdfast schedules list` shows "
        "all of a tenant, with their owners"
    )
    return NotFoundError("schedule", schedule_id, text)


class ScheduleStorage(Protocol):
    """The schedules of one tenant, in the engine that stores its tasks.

    The caller checks all arguments. A schedule is due from its ``next_at`` on. A new, changed or
    resumed one is due at once, so that a worker computes its next tick. Every change wakes the
    workers that wait for ``BELL``.
    """

    @abstractmethod
    async def put(self, draft: ScheduleDraft, *, replace: bool, most: int) -> StoredSchedule:
        """Store a schedule whose ticks start now; a stored one with the same digest is unchanged.

        Raises ``too_many_schedules`` for a new one if its owner has ``most`` already.

        If the digest differs, it raises ``other_schedule``, or with ``replace`` replaces the
        content and keeps the pause and ``uid``. If ``cron`` or ``timezone`` changed, ticks start
        now.
        """

    @abstractmethod
    async def get(self, key: ScheduleKey) -> StoredSchedule | None:
        """Return a schedule, or ``None``."""

    @abstractmethod
    async def list_schedules(
        self, owner: str | None, after: ScheduleKey | None, limit: int
    ) -> Sequence[StoredSchedule]:
        """Return schedules of one owner, or of all, after ``after``, ordered by owner and id."""

    @abstractmethod
    async def set_paused(self, key: ScheduleKey, *, paused: bool) -> StoredSchedule:
        """Pause or resume a schedule; the ticks during the pause are skipped. Can be repeated.

        Raises ``NotFoundError("schedule", …)``.
        """

    @abstractmethod
    async def delete(self, key: ScheduleKey) -> bool:
        """Delete a schedule. Its tasks stay. Returns whether it existed."""

    @abstractmethod
    async def due(self, limit: int) -> DueSchedules:
        """Return schedules that are due and not paused, the longest due first."""

    @abstractmethod
    async def defer(self, schedule: StoredSchedule, seconds: float) -> None:
        """Postpone a schedule that cannot be run by ``seconds``; its ticks stay to be run.

        Does nothing unless the schedule still has this ``uid`` and ``version``.
        """

    @abstractmethod
    async def run(self, run: ScheduleRun) -> list[TaskSnapshot]:
        """Submit the tasks and advance the schedule, in one step. Returns the tasks.

        Does nothing unless the schedule still has this ``uid`` and ``version``: another worker ran
        the ticks, or it was changed.
        """
