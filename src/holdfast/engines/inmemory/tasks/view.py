"""The code that all parts of the in-memory ledger share: tasks, leases and timelines."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.tasks.data import (
    ContextRow,
    Delivery,
    Doorbell,
    LedgerData,
    TaskRow,
)
from holdfast.spi.tasks.conflicts import other_body
from holdfast.spi.tasks.draft import beyond_the_calendar
from holdfast.spi.tasks.records import StoredBody, StoredEvent
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage, StoredStep
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.errors import LeaseLostError, NotFoundError
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TERMINAL, Actor, TaskState, check_edge
from holdfast.values.tasks.events import TRY, Transition
from holdfast.values.tasks.records import Lease

_ANNOUNCED = (Transition, StoredMessage, StoredChunk)
NEVER = datetime.max.replace(tzinfo=UTC)
"""The time of a task that waits for something else than a time: it never comes."""


class LedgerView:
    """The base of all parts of the ledger: the tasks of one tenant."""

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, LedgerData)
        self._by = ""

    @contextmanager
    def _acting(self, by: str) -> Iterator[None]:
        """Log events under this name inside the block, which must contain no await."""
        self._by = by
        try:
            yield
        finally:
            self._by = ""

    def _find(self, task_id: str, owner: str | None) -> TaskRow | None:
        """Return the task; ``None`` if it does not exist or belongs to another owner."""
        row = self._data.tasks.get(task_id)
        return row if row is not None and owner in (None, row.owner) else None

    def _owned(self, task_id: str, owner: str | None) -> TaskRow:
        row = self._find(task_id, owner)
        if row is None:
            raise NotFoundError("task", task_id)
        return row

    def _held(self, lease: Lease) -> TaskRow:
        """Return the task of a lease. Raises unless it is working under the lease's fence."""
        row = self._data.tasks.get(lease.task_id)
        if row is None or row.fence != lease.fence or row.state is not TaskState.WORKING:
            raise LeaseLostError("task", lease.task_id)
        return row

    def _context(self, row: TaskRow) -> ContextRow:
        return self._data.contexts[row.owner, row.session_id]

    def _moment(self, when: datetime | timedelta | None) -> datetime | None:
        """Return a time; a timedelta is added to the current time."""
        if not isinstance(when, timedelta):
            return when
        try:
            return self._engine.now() + when
        except OverflowError:
            raise beyond_the_calendar() from None

    def _log(self, row: TaskRow, by: Actor, body: StoredBody, now: datetime) -> None:
        """Append an entry to the timeline, queue its deliveries and wake the followers."""
        row.version += 1
        row.events.append(StoredEvent(row.version, now, by, row.fence, body, self._by))
        if isinstance(body, Transition):
            self._data.add_change(row.id, row.version)
            if not row.adopted:
                self._data.uncopied[row.id] = None
        if isinstance(body, _ANNOUNCED):
            for config in row.push:
                lane = self._data.lanes.setdefault((row.id, config), {})
                lane[row.version] = Delivery(new_id(), row.version, now)
        self._data.followers.ring(row.id)

    def _move(
        self,
        row: TaskRow,
        to: TaskState,
        by: Actor,
        *,
        note: str = "",
        status: str = "",
        run_after: datetime | None = None,
        worker: str = "",
        keeps_place: bool = False,
        at: datetime | None = None,
    ) -> None:
        """Change a task's state along an edge of the lifecycle, and log the transition.

        An adopted task, which another system runs, takes any reported state and is never queued.
        """
        before = row.state if row.transitions else None
        if not row.adopted:
            check_edge(row.id, before, to, by)
            self._requeue(row, before, to, run_after, keeps_place=keeps_place)
        now, data = at or self._engine.now(), self._data
        if before is TaskState.WORKING and not row.adopted:
            del data.working[row.id]
            self._context(row).working.discard(row.id)
            worker, row.worker, row.lease_expires_at = row.worker, "", None
        if to is TaskState.WORKING and not row.adopted:
            data.working[row.id] = None
            self._context(row).working.add(row.id)
            row.worker = worker
        if to is TaskState.PAUSED:
            row.attempts = 0
            row.pause_requested = False
        if to in TERMINAL:
            row.cancel_requested = row.pause_requested = False
            self._clean_up(row.id, files=False)
            self._wake_parent(row)
        row.state, row.updated_at, row.note, row.status = to, now, note, status
        row.run_after = run_after
        row.transitions += 1
        move = Transition(
            row.id,
            row.transitions,
            before,
            to,
            now,
            by,
            worker=worker,
            fence=row.fence,
            attempt=row.attempts,
            note=note,
            run_after=run_after,
            message_id=status,
            app_version=row.app_version if to is TaskState.WORKING else "",
        )
        self._log(row, by, move, now)

    def _requeue(
        self,
        row: TaskRow,
        before: TaskState | None,
        to: TaskState,
        run_after: datetime | None,
        *,
        keeps_place: bool,
    ) -> None:
        """Remove a task from the queue, or add it, as its new state requires."""
        now, queue = self._engine.now(), self._data.queue
        if before is TaskState.SUBMITTED and row.due_at is not None:
            del queue[bisect_left(queue, (row.due_at, row.id))]
        if to is TaskState.SUBMITTED:
            if not keeps_place or row.due_at is None:
                waits = row.waits_for > 0 or row.waits_topic is not None
                row.due_at = max(run_after or (NEVER if waits else now), now)
            insort(queue, (row.due_at, row.id))
            self._engine.table("", Doorbell).ring()

    def _wake_parent(self, child: TaskRow) -> None:
        """Count an ended or deleted child that its parent awaits. The last wakes the parent."""
        parent = self._data.tasks.get(child.parent_id)
        if child.awaited and parent is not None and parent.waits_for:
            child.awaited = False
            parent.waits_for -= 1
            if not parent.waits_for:
                self._make_due(parent)

    def _make_due(self, row: TaskRow) -> None:
        """Make a waiting task ready to be claimed now."""
        if row.state is TaskState.SUBMITTED and row.due_at is not None:
            queue = self._data.queue
            del queue[bisect_left(queue, (row.due_at, row.id))]
            row.due_at = self._engine.now()
            insort(queue, (row.due_at, row.id))
            self._engine.table("", Doorbell).ring()

    def _clean_up(self, task_id: str, *, files: bool) -> None:
        """Make the cleanup marks of a task claimable; those of artifact files only if ``files``."""
        for row in self._data.cleanup.get(task_id, {}).values():
            if files or row.mark.kind != "artifact":
                row.due_at = self._engine.now()
                self._data.cleanup_due[task_id] = None

    def _known(self, row: TaskRow, message: StoredMessage) -> bool:
        """Return whether the task has this message. Raises if the stored one has another body."""
        known = row.messages.get(message.id)
        if known is not None:
            self._same(known, message)
        return known is not None

    def _same(self, known: StoredMessage, message: StoredMessage) -> None:
        if not known.same_body(message):
            raise other_body("message", message.id)

    def _say(self, row: TaskRow, message: StoredMessage, by: Actor) -> None:
        """Add a message to the task and to its context."""
        stored = message._replace(seq=row.version + 1)
        self._log(row, by, stored, self._engine.now())
        row.messages[message.id] = stored
        self._context(row).messages.append((row.id, message.id))

    def _keep(self, row: TaskRow, draft: StepDraft, by: Actor) -> None:
        """Store a step. Unless it is a failed try, it is progress and resets the attempts."""
        now, key = self._engine.now(), draft.key
        written = len(row.step_chunks.get((key, row.fence), []))
        started = None if draft.seconds is None else now - timedelta(seconds=draft.seconds)
        row.steps[key] = StoredStep(
            key, draft.result, now, draft.digest, row.fence, written, started
        )
        row.said[key] = draft.message_id
        if key.kind != TRY:
            row.attempts = 0
        self._log(row, by, row.steps[key], now)
