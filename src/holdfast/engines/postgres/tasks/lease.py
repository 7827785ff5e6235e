"""The queue of the ledger on Postgres, and the leases on claimed tasks."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_task
from holdfast.engines.postgres.tasks.view import (
    LedgerView,
    message_columns,
    moment,
    step_columns,
)
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.spi.tasks.workers import Completed, LeaseStorage, Outcome, TaskClaim
from holdfast.values.codec import encode_json
from holdfast.values.errors import LeaseLostError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import Lease

_SQL = load("ledger_lease")


class PostgresLeases(LedgerView, LeaseStorage):
    """Claims queued tasks, and keeps the leases under which workers run them."""

    async def claim(self, claim: TaskClaim) -> list[TaskSnapshot]:
        """Claim tasks that are ready to run, the longest waiting first."""
        names = None if claim.agents is None else [str(agent) for agent in claim.agents]
        limits = encode_json([limit.to_json() for limit in claim.limits]) if claim.limits else None
        versions = {agent: list(known) for agent, known in claim.versions.items()}
        rows = await self._engine.fetch(
            _SQL["claim"],
            *(self._tenant, claim.worker, names, claim.limit, claim.lease_seconds),
            *(claim.serial_contexts, claim.history_length, limits),
            *(encode_json(versions) if versions else None, claim.app_version),
            safe=False,
        )
        return [to_task(row) for row in rows]

    async def heartbeat(self, lease: Lease, lease_seconds: float) -> Lease:
        """Extend a lease from now."""
        row = await self._engine.fetchrow(
            _SQL["heartbeat"], self._tenant, lease.task_id, lease.fence, lease_seconds, safe=True
        )
        if row is None:
            raise LeaseLostError("task", lease.task_id)
        return Lease(*row)

    async def transition(self, lease: Lease, outcome: Outcome) -> TaskSnapshot:
        """End the work on a task, or let it wait, and set its state."""
        row = await self._engine.fetchrow(
            _SQL["transition"],
            *(self._tenant, lease.task_id, lease.fence),
            *(outcome.to.value, encode_json(outcome.note), *moment(outcome.run_after)),
            outcome.progress,
            *message_columns(outcome.message),
            *step_columns(outcome.ask),
            *(outcome.form, outcome.result, list(outcome.children), outcome.topic),
            safe=False,
        )
        return self._queued(row)

    async def complete_many(self, ends: Sequence[Completed]) -> dict[str, TaskState]:
        """Complete tasks in one statement. Returns the new state of each."""
        leases = [one.lease for one in ends]
        messages = zip(*(message_columns(one.message) for one in ends), strict=True)
        rows = await self._engine.fetch(
            _SQL["complete"],
            *(self._tenant, [one.task_id for one in leases], [one.fence for one in leases]),
            [one.worker for one in leases],
            [one.result for one in ends],
            *map(list, messages),
            safe=False,
        )
        reached = {task_id: TaskState(state) for task_id, state in rows}
        if len(reached) < len(ends):
            # The statement leaves alone what needs a closer look: a cancel, a message sent again.
            reached |= await self.complete_each(
                one for one in ends if one.message and one.lease.task_id not in reached
            )
        return reached

    async def release(self, lease: Lease, note: str) -> TaskSnapshot:
        """Put a task back in the queue, without counting an attempt."""
        text = encode_json(note)
        row = await self._engine.fetchrow(
            _SQL["release"], self._tenant, lease.task_id, lease.fence, text, safe=False
        )
        return self._queued(row)

    async def recover_expired(self, limit: int) -> list[TaskSnapshot]:
        """Put tasks whose lease has expired back in the queue, the longest expired first."""
        rows = await self._engine.fetch(_SQL["recover"], self._tenant, limit, safe=False)
        return [to_task(row) for row in rows]
