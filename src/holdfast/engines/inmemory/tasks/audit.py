"""The events of tasks in memory, and the feedback on tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from holdfast.engines.inmemory.tasks.data import event_bytes
from holdfast.engines.inmemory.tasks.view import LedgerView
from holdfast.spi.tasks.conflicts import other_body
from holdfast.spi.tasks.records import Extent, StoredEvent, TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredFeedback, fitting
from holdfast.spi.tasks.timeline import AuditStorage, Followed, Timeline
from holdfast.values.tasks.records import TaskRecord
from holdfast.values.tasks.replay import replay


@dataclass(slots=True)
class Follower(Followed):
    """A subscription to the changes of one task."""

    rung: asyncio.Event

    async def wait(self, *, found: bool) -> None:  # noqa: ARG002 - no news is ever missed here
        """Return when the task has changed."""
        await self.rung.wait()
        self.rung.clear()


class InMemoryAudit(LedgerView, AuditStorage):
    """Reads the timelines of tasks, and stores feedback on tasks."""

    async def events(
        self, key: TaskKey, after: int, limit: int | None, max_bytes: int | None
    ) -> list[StoredEvent]:
        """Return the events of a task with numbers above ``after``."""
        row = self._find(*key)
        found = [] if row is None else row.events[after:][:limit]
        return found[: fitting(map(event_bytes, found), max_bytes)]

    async def next_events(self, key: TaskKey, after: int) -> Timeline | None:
        """Return all events of a task with numbers above ``after``, or ``None``."""
        row = self._find(*key)
        return None if row is None else Timeline(row.state, row.version, row.events[after:])

    @contextmanager
    def following(self, task_id: str) -> Iterator[Follower]:
        """Subscribe to the changes of a task."""
        with self._data.followers.bell(task_id) as rung:
            yield Follower(rung)

    async def replay(self, key: TaskKey, until: int, extent: Extent) -> TaskRecord | None:
        """Return a task as it was after the event ``until``, or ``None``."""
        row = self._find(*key)
        if row is None:
            return None
        events = (event.load(row.id) for event in row.events[:until])
        task = replay(TaskSnapshot(row).load(), events)
        if task is None:
            return None
        count = len(task.messages) if extent.history_length is None else extent.history_length
        return replace(
            task,
            messages=task.messages[len(task.messages) - min(count, len(task.messages)) :],
            artifacts=task.artifacts if extent.artifacts else [],
        )

    async def append_feedback(self, key: TaskKey, feedback: StoredFeedback) -> StoredFeedback:
        """Store feedback, unless it is stored already."""
        row = self._owned(*key)
        fresh = replace(feedback, created_at=self._engine.now())
        known = row.feedback.setdefault(feedback.id, fresh)
        if known.digest() != feedback.digest():
            raise other_body("feedback", feedback.id)
        return known

    async def list_feedback(self, key: TaskKey) -> list[StoredFeedback]:
        """Return the feedback on a task, in order."""
        row = self._find(*key)
        return [] if row is None else list(row.feedback.values())
