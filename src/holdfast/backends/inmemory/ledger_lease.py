"""The queue of the in-memory ledger, and the leases on what was taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from holdfast.backends.inmemory.ledger_data import TaskRow
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
    check_text,
)
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.errors import ConflictError, LeaseLostError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.lifecycle import Actor, TaskState, check_edge, check_state
from holdfast.kernel.storage.ledger_draft import check_run_after
from holdfast.kernel.storage.ledger_events import StepKey
from holdfast.kernel.storage.ledger_input import check_agents, check_extras, check_leases
from holdfast.kernel.storage.ledger_lease import LeaseLedger
from holdfast.kernel.storage.ledger_records import LEASE_SECONDS, ClaimedTask, Lease, TaskRecord
from holdfast.kernel.storage.ledger_stored import StoredMessage


class InMemoryLeases(LedgerView, LeaseLedger):
    """``LeaseLedger`` in the process."""

    async def claim(
        self,
        worker: str,
        *,
        agents: Sequence[AgentId | str] | None = None,
        limit: int = 1,
        lease_seconds: float = LEASE_SECONDS,
        serial_contexts: bool = True,
        history_length: int | None = None,
    ) -> list[ClaimedTask]:
        """Take up to ``limit`` tasks that are due, those that have waited longest first."""
        check_id("worker", worker)
        names = check_agents(agents)
        check_count("limit", limit)
        expires_at = self._expiry(lease_seconds)
        check_optional_count("history_length", history_length)
        chosen = self._choose(names, limit, serial_contexts=serial_contexts)
        for row in chosen:
            self._take(row, worker, expires_at, lease_seconds)
        return [
            ClaimedTask(row.load(history_length=history_length), _lease(row, expires_at))
            for row in chosen
        ]

    def _choose(
        self, names: set[AgentId] | None, limit: int, *, serial_contexts: bool
    ) -> list[TaskRow]:
        now, chosen, contexts = self._engine.now(), list[TaskRow](), set[tuple[str, str]]()
        for due_at, task_id in self._data.queue:
            if due_at > now or len(chosen) == limit:
                break
            row = self._data.tasks[task_id]
            context = (row.owner, row.context_id)
            if names is not None and row.agent not in names:
                continue
            if serial_contexts and (context in contexts or self._context(row).working):
                continue
            contexts.add(context)
            chosen.append(row)
        return chosen

    def _take(self, row: TaskRow, worker: str, expires_at: datetime, lease_seconds: float) -> None:
        row.fence += 1
        row.attempts += 1
        row.lease_expires_at, row.lease_seconds = expires_at, lease_seconds
        self._move(row, TaskState.WORKING, Actor.WORKER, worker=worker)

    async def heartbeat(self, lease: Lease, *, lease_seconds: float = LEASE_SECONDS) -> Lease:
        """Hold a task for ``lease_seconds`` from now; the answer tells what clients requested."""
        expires_at = self._expiry(lease_seconds)
        row = self._held(lease)
        row.lease_expires_at, row.lease_seconds = expires_at, lease_seconds
        return _lease(row, expires_at)

    async def transition(
        self,
        lease: Lease,
        to: TaskState | str,
        *,
        message: ChatMessage | None = None,
        note: str = "",
        run_after: datetime | timedelta | None = None,
        progress: bool = False,
        ask: StepKey | None = None,
    ) -> TaskRecord:
        """End or suspend the work; the record says what became of it."""
        wanted = check_state("to", to)
        said = None if message is None else StoredMessage.of(message)
        check_text("note", note)
        moment = self._moment(check_run_after(run_after))
        check_extras(wanted, run_after=run_after, progress=progress, ask=ask)
        row = self._held(lease)
        check_edge(row.id, row.state, wanted, Actor.WORKER)
        if ask is not None and ask in row.steps:
            raise ConflictError("step", str(ask), f"{ask} was answered: its answer is a step")
        if said is not None and not self._known(row, said):
            self._say(row, said, Actor.WORKER)
        if progress:
            row.attempts = 0
        reached, why = self._settle(row, wanted, note, f"the worker reported {wanted}")
        row.ask = ask if reached is wanted else None
        later = moment if reached in (TaskState.SUBMITTED, TaskState.PAUSED) else None
        status = "" if said is None else said.id
        self._move(row, reached, Actor.WORKER, note=why, status=status, run_after=later)
        return row.load()

    def _settle(
        self, row: TaskRow, wanted: TaskState, note: str, event: str
    ) -> tuple[TaskState, str]:
        """Where a task goes when its work ends like this, and the note of it."""
        if row.cancel_requested and wanted is not TaskState.CANCELED:
            return TaskState.CANCELED, _because(f"a cancel was requested before {event}", note)
        if wanted is not TaskState.SUBMITTED:
            return wanted, note
        if row.attempts >= row.max_attempts:
            spent = f"gave up after {row.attempts} attempts without progress"
            return TaskState.FAILED, _because(spent, note)
        return TaskState.PAUSED if row.pause_requested else wanted, note

    async def complete_many(self, leases: Sequence[Lease]) -> list[TaskState | None]:
        """End the work on several tasks, each as ``transition`` to ``completed`` does."""
        return [self._completed(lease) for lease in check_leases(leases)]

    def _completed(self, lease: Lease) -> TaskState | None:
        try:
            row = self._held(lease)
        except LeaseLostError:
            return None
        done = TaskState.COMPLETED
        reached, why = self._settle(row, done, "", f"the worker reported {done}")
        row.ask = None
        self._move(row, reached, Actor.WORKER, note=why)
        return reached

    async def release(self, lease: Lease, *, note: str = "") -> TaskRecord:
        """Hand a task back unfinished, without counting an attempt."""
        check_text("note", note)
        row = self._held(lease)
        row.attempts = 0
        reached, why = self._settle(row, TaskState.SUBMITTED, note, "the worker released it")
        self._move(row, reached, Actor.WORKER, note=why, keeps_place=True)
        return row.load()

    async def recover_expired(self, *, limit: int = 100) -> list[TaskRecord]:
        """Take back tasks whose lease has expired, the longest expired first."""
        check_count("limit", limit)
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
        return [row.load() for row in recovered]

    def _expiry(self, lease_seconds: object) -> datetime:
        return self._engine.now() + timedelta(seconds=check_seconds("lease_seconds", lease_seconds))


def _lease(row: TaskRow, expires_at: datetime) -> Lease:
    return Lease(
        row.id,
        row.fence,
        row.worker,
        expires_at,
        cancel_requested=row.cancel_requested,
        pause_requested=row.pause_requested,
    )


def _correct(row: TaskRow, now: datetime) -> None:
    """After the clock went back: no lease lasts longer than it was taken for, and all is due."""
    latest = now + timedelta(seconds=row.lease_seconds)
    if row.lease_expires_at is not None and row.lease_expires_at > latest:
        row.lease_expires_at = latest
    if row.due_at is not None and row.due_at > now:
        row.due_at = now


def _because(reason: str, note: str) -> str:
    return f"{reason}: {note}" if note else reason
