"""Schedules, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.values.errors import ConflictError
from holdfast.values.identity import AgentId
from holdfast.values.schedules import Missed

BELL = "holdfast.schedules"
"""Workers wait for changes of schedules as for the requests of a worker of this name."""


class ScheduleKey(NamedTuple):
    """A schedule. Two owners may use the same id for different schedules."""

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
    """Of all fields but the id and the owner."""

    uid: str
    """A new id, which no other schedule has, also none that had the same id before."""


class StoredSchedule(NamedTuple):
    """A schedule as it is stored.

    All ticks until ``after`` are decided. ``version`` grows with every change and every run.
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
    """Schedules that may have a tick to run, and the engine's time."""

    now: datetime
    schedules: Sequence[StoredSchedule]


class ScheduleRun(NamedTuple):
    """The ticks of a schedule until a time: the tasks to submit, in order, and what comes then."""

    key: ScheduleKey
    uid: str
    version: int
    until: datetime
    next_at: datetime | None
    last_run_at: datetime | None
    drafts: Sequence[Draft]


def too_many_schedules(schedule_id: str, owner: str, most: int) -> ConflictError:
    """A schedule for which its owner has no room.

    >>> str(too_many_schedules("daily", "ana", 1000))
    "owner 'ana' has 1000 schedules: delete one first"
    """
    return ConflictError(
        "schedule", schedule_id, f"owner {owner!r} has {most} schedules: delete one first"
    )


def other_schedule(schedule_id: str) -> ConflictError:
    """A schedule whose id is there with other content.

    >>> str(other_schedule("daily"))
    "schedule 'daily' is there with other content: use upsert to replace it"
    """
    text = f"schedule {schedule_id!r} is there with other content: use upsert to replace it"
    return ConflictError("schedule", schedule_id, text)


class ScheduleStorage(Protocol):
    """The schedules of one tenant, in the engine that stores its tasks. Every argument is checked.

    A schedule is due from its ``next_at`` on. A new, changed or resumed one is due at once, so that
    a worker computes its next tick. Every change wakes the workers that wait for ``BELL``.
    """

    @abstractmethod
    async def put(self, draft: ScheduleDraft, *, replace: bool, most: int) -> StoredSchedule:
        """Store a schedule from the engine's time on; one with the same digest stays as it is.

        Raises ``too_many_schedules`` for a new one if its owner has ``most`` already.

        If the digest differs: with ``replace`` the content is replaced, and pause and ``uid`` stay;
        ticks are decided from now on if ``cron`` or ``timezone`` changed. Else ``other_schedule``.
        """

    @abstractmethod
    async def get(self, key: ScheduleKey) -> StoredSchedule | None:
        """Return a schedule."""

    @abstractmethod
    async def list_schedules(
        self, owner: str | None, after: ScheduleKey | None, limit: int
    ) -> Sequence[StoredSchedule]:
        """Return schedules of an owner, or of all, by owner and id, after one of them."""

    @abstractmethod
    async def set_paused(self, key: ScheduleKey, *, paused: bool) -> StoredSchedule:
        """Pause or resume; a resumed one has no ticks before now. The same again has no effect.

        Raises ``NotFoundError("schedule", …)``.
        """

    @abstractmethod
    async def delete(self, key: ScheduleKey) -> bool:
        """Delete a schedule. Its tasks stay."""

    @abstractmethod
    async def due(self, limit: int) -> DueSchedules:
        """Return schedules that are due and not paused, the longest due first."""

    @abstractmethod
    async def defer(self, schedule: StoredSchedule, seconds: float) -> None:
        """Let a schedule that cannot be run be due again later; no tick is decided.

        Does nothing unless the schedule still has this ``uid`` and ``version``.
        """

    @abstractmethod
    async def run(self, run: ScheduleRun) -> list[TaskSnapshot]:
        """Submit the tasks and advance the schedule, in one step. Returns the tasks.

        Does nothing unless the schedule still has this ``uid`` and ``version``: another worker ran
        the ticks, or it was changed.
        """
