"""What operators read about tasks: counts, workers, and the result of an operation on many."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """How many tasks there are by state or agent.

    >>> TaskCounts({"completed": 3, "failed": 1}).total
    4
    """

    counts: dict[str, int]
    capped: bool = False
    """Whether there are more tasks than were counted."""

    @property
    def total(self) -> int:
        """How many tasks were counted."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker that holds tasks of a tenant.

    >>> WorkerRecord("w1", ["t1"], None, datetime(2030, 1, 1)).name
    'w1'
    """

    name: str
    task_ids: list[str]
    """The tasks that it holds, in order of their ids."""

    last_heartbeat_at: datetime | None
    """When it last extended the lease of one of them."""

    lease_expires_at: datetime
    """When the first lease of its tasks expires: from then on recovery may take the task back."""

    version: str = ""
    """The version of its app."""


@dataclass(frozen=True, slots=True)
class ManyTasks:
    """The result of an operation on many tasks.

    >>> ManyTasks(["t1", "t2"], dry_run=True).matched
    2
    """

    task_ids: list[str]
    """The tasks that the operation applies to, in order of their ids; for a retry, the old ones."""

    new_task_ids: tuple[str, ...] = ()
    """The new tasks of a retry."""

    more: bool = False
    """Whether more tasks matched than the limit allows: call it again."""

    dry_run: bool = False

    @property
    def matched(self) -> int:
        """How many tasks are in ``task_ids``."""
        return len(self.task_ids)
