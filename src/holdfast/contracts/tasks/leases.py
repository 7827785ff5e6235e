"""Who works on a task: claims, leases, and what becomes of the work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from holdfast.contracts.tasks.scope import LedgerCalls
from holdfast.kernel.storage.ledger_draft import check_run_after
from holdfast.kernel.storage.ledger_events import StepKey
from holdfast.kernel.storage.ledger_input import (
    check_agents,
    check_extras,
    check_lease,
    check_leases,
)
from holdfast.kernel.storage.ledger_lease import LeaseLedger
from holdfast.kernel.storage.ledger_records import LEASE_SECONDS, ClaimedTask, Lease, TaskRecord
from holdfast.kernel.storage.ledger_stored import StoredMessage
from holdfast.spi.tasks_records import lease_on
from holdfast.spi.tasks_workers import Outcome, TaskClaim
from holdfast.values.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
    check_text,
)
from holdfast.values.content import ChatMessage
from holdfast.values.identity import Agent
from holdfast.values.lifecycle import TaskState, check_state


class LeaseCalls(LedgerCalls, LeaseLedger):
    """``LeaseLedger`` on any engine."""

    async def claim(
        self,
        worker: str,
        *,
        agents: Sequence[Agent] | None = None,
        limit: int = 1,
        lease_seconds: float = LEASE_SECONDS,
        serial_contexts: bool = True,
        history_length: int | None = None,
    ) -> list[ClaimedTask]:
        """Take up to ``limit`` tasks that are due, those that have waited longest first."""
        claim = TaskClaim(
            check_id("worker", worker),
            check_agents(agents),
            check_count("limit", limit),
            check_seconds("lease_seconds", lease_seconds),
            bool(serial_contexts),
            check_optional_count("history_length", history_length),
        )
        return [
            ClaimedTask(found.load(), lease_on(found.task))
            for found in await self._storage.claim(claim)
        ]

    async def heartbeat(self, lease: Lease, *, lease_seconds: float = LEASE_SECONDS) -> Lease:
        """Hold a task for ``lease_seconds`` from now; the answer tells what clients requested."""
        seconds = check_seconds("lease_seconds", lease_seconds)
        return await self._storage.heartbeat(check_lease(lease), seconds)

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
        outcome = Outcome(
            check_state("to", to),
            None if message is None else StoredMessage.of(message),
            check_text("note", note),
            check_run_after(run_after),
            bool(progress),
            ask,
        )
        check_extras(outcome.to, run_after=run_after, progress=progress, ask=ask)
        return (await self._storage.transition(check_lease(lease), outcome)).load()

    async def complete_many(self, leases: Sequence[Lease]) -> list[TaskState | None]:
        """End the work on several tasks, each as ``transition`` to ``completed`` does."""
        checked = check_leases(leases)
        if not checked:
            return []
        reached = await self._storage.complete_many(checked)
        return [reached.get(lease.task_id) for lease in checked]

    async def release(self, lease: Lease, *, note: str = "") -> TaskRecord:
        """Hand a task back unfinished, without counting an attempt."""
        text = check_text("note", note)
        return (await self._storage.release(check_lease(lease), text)).load()

    async def recover_expired(self, *, limit: int = 100) -> list[TaskRecord]:
        """Take back tasks whose lease has expired, the longest expired first."""
        found = await self._storage.recover_expired(check_count("limit", limit))
        return [task.load() for task in found]
