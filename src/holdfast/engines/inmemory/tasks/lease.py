"""The queue of the in-memory ledger, and the leases on claimed tasks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.engines.inmemory.tasks.rooms import Rooms
from holdfast.engines.inmemory.tasks.view import LedgerView
from holdfast.spi.tasks.conflicts import answered
from holdfast.spi.tasks.records import Extent, TaskSnapshot, lease_on
from holdfast.spi.tasks.workers import Completed, LeaseStorage, Outcome, TaskClaim
from holdfast.values.lifecycle import TERMINAL, Actor, TaskState, check_edge
from holdfast.values.tasks.records import Lease


class InMemoryLeases(LedgerView, LeaseStorage):
    """Claims queued tasks, and keeps the leases under which workers run them."""

    async def claim(self, claim: TaskClaim) -> list[TaskSnapshot]:
        """Claim tasks that are ready to run: by priority, then the longest waiting first."""
        chosen = self._choose(claim)
        for row in chosen:
            row.fence += 1
            row.attempts += 1
            known = claim.versions.get(str(row.agent), ())
            row.handler_version = row.handler_version or next(iter(known), "")
            row.app_version = claim.app_version
            self._extend(row, claim.lease_seconds)
            self._move(row, TaskState.WORKING, Actor.WORKER, worker=claim.worker)
        return [row.snapshot(Extent(claim.history_length)) for row in chosen]

    def _choose(self, claim: TaskClaim) -> list[TaskRow]:
        now, chosen, contexts = self._engine.now(), list[TaskRow](), set[tuple[str, str]]()
        rooms = Rooms(self._data, claim.limits, now)
        for row in self._waiting(now):
            if len(chosen) == claim.limit:
                break
            context = (row.owner, row.session_id)
            if claim.agents is not None and row.agent not in claim.agents:
                continue
            began_with = row.handler_version
            if began_with and began_with not in claim.versions.get(str(row.agent), ()):
                continue
            if claim.serial_contexts and (context in contexts or self._context(row).working):
                continue
            if not rooms.take(row):
                continue
            contexts.add(context)
            chosen.append(row)
        return chosen

    def _waiting(self, now: datetime) -> Iterator[TaskRow]:
        """Yield the tasks that are ready to run, the highest priority first."""
        due = bisect_right(self._data.queue, now, key=lambda one: one[0])
        rows = (self._data.tasks[task_id] for _, task_id in self._data.queue[:due])
        if self._data.prioritized:
            return iter(sorted(rows, key=lambda row: -row.priority))
        return rows

    def _extend(self, row: TaskRow, seconds: float) -> None:
        row.lease_expires_at = self._engine.now() + timedelta(seconds=seconds)
        row.lease_seconds = seconds

    async def heartbeat(self, lease: Lease, lease_seconds: float) -> Lease:
        """Extend a lease from now."""
        row = self._held(lease)
        self._extend(row, lease_seconds)
        return lease_on(row)

    async def transition(self, lease: Lease, outcome: Outcome) -> TaskSnapshot:
        """End the work on a task, or let it wait, and set its state."""
        moment = self._moment(outcome.run_after)
        wanted, said, ask = outcome.to, outcome.message, outcome.ask
        row = self._held(lease)
        check_edge(row.id, row.state, wanted, Actor.WORKER)
        if ask is not None and ask in row.steps:
            raise answered(ask)
        if said is not None and not self._known(row, said):
            self._say(row, said, Actor.WORKER)
        if outcome.progress:
            row.attempts = 0
        reached, why = self._settle(row, wanted, outcome.note, f"the worker reported {wanted}")
        row.ask = ask if reached is wanted else None
        row.form = outcome.form if reached is wanted else None
        row.result = outcome.result if reached is wanted else None
        moment = self._wait(row, outcome, moment)
        later = moment if reached in (TaskState.SUBMITTED, TaskState.PAUSED) else None
        status = "" if said is None else said.id
        self._move(row, reached, Actor.WORKER, note=why, status=status, run_after=later)
        return row.snapshot()

    def _wait(self, row: TaskRow, outcome: Outcome, moment: datetime | None) -> datetime | None:
        """Record which children or topic a task still waits for. Returns its ``run_after``."""
        tasks = self._data.tasks
        awaited = [tasks[one] for one in set(outcome.children) if one in tasks]
        live = [one for one in awaited if one.parent_id == row.id and one.state not in TERMINAL]
        for child in live:
            child.awaited = True
        row.waits_for, row.waits_topic = len(live), None
        if outcome.topic is None:
            return moment
        if row.next_in_inbox(outcome.topic) is not None:
            return None
        row.waits_topic = outcome.topic
        return moment

    def _settle(
        self, row: TaskRow, wanted: TaskState, note: str, event: str
    ) -> tuple[TaskState, str]:
        """Return the state that a task moves to when its work ends, and the note."""
        if row.cancel_requested and wanted is not TaskState.CANCELED:
            return TaskState.CANCELED, _because(f"a cancel was requested before {event}", note)
        if wanted is not TaskState.SUBMITTED:
            return wanted, note
        if row.attempts >= row.max_attempts:
            spent = f"gave up after {row.attempts} attempts without progress"
            return TaskState.FAILED, _because(spent, note)
        return TaskState.PAUSED if row.pause_requested else wanted, note

    async def complete_many(self, ends: Sequence[Completed]) -> dict[str, TaskState]:
        """Complete tasks. Returns the new state of each whose lease is not lost."""
        return await self.complete_each(ends)

    async def release(self, lease: Lease, note: str) -> TaskSnapshot:
        """Put a task back in the queue, without counting an attempt."""
        row = self._held(lease)
        row.attempts = 0
        reached, why = self._settle(row, TaskState.SUBMITTED, note, "the worker released it")
        self._move(row, reached, Actor.WORKER, note=why, keeps_place=True)
        return row.snapshot()

    async def recover_expired(self, limit: int) -> list[TaskSnapshot]:
        """Put tasks whose lease has expired back in the queue, the longest expired first."""
        now, rows = self._engine.now(), [self._data.tasks[one] for one in self._data.working]
        for row in rows:
            _correct(row, now)
        expired = sorted(
            (row.lease_expires_at, row.id)
            for row in rows
            if row.lease_expires_at is not None and row.lease_expires_at <= now
        )
        recovered = [self._data.tasks[task_id] for _, task_id in expired[:limit]]
        for row in recovered:
            note = f"the lease of {row.worker} expired"
            reached, why = self._settle(row, TaskState.SUBMITTED, note, "its lease expired")
            self._move(row, reached, Actor.RECOVERY, note=why, keeps_place=True)
        return [row.snapshot() for row in recovered]


def _correct(row: TaskRow, now: datetime) -> None:
    """After the clock was set back, shorten the lease and make a queued task ready to run."""
    latest = now + timedelta(seconds=row.lease_seconds)
    if row.lease_expires_at is not None and row.lease_expires_at > latest:
        row.lease_expires_at = latest
    if row.due_at is not None and row.due_at > now:
        row.due_at = now


def _because(reason: str, note: str) -> str:
    return f"{reason}: {note}" if note else reason
