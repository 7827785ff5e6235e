"""The queue of the ledger on Postgres, and the leases on what was taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.backends.postgres.ledger_rows import to_task
from holdfast.backends.postgres.ledger_view import (
    LedgerView,
    message_columns,
    moment,
    step_columns,
)
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
    check_text,
)
from holdfast.kernel.core.codec import encode_json
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.errors import LeaseLostError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.lifecycle import TaskState, check_state
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

_SQL = load("ledger_lease")


class PostgresLeases(LedgerView, LeaseLedger):
    """``LeaseLedger`` on Postgres."""

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
        check_seconds("lease_seconds", lease_seconds)
        check_optional_count("history_length", history_length)
        rows = await self._engine.fetch(
            _SQL["claim"],
            *(self._tenant, worker, None if names is None else [str(one) for one in names]),
            *(limit, lease_seconds, bool(serial_contexts), history_length),
            safe=False,
        )
        return [ClaimedTask(to_task(row), _to_lease(row)) for row in rows]

    async def heartbeat(self, lease: Lease, *, lease_seconds: float = LEASE_SECONDS) -> Lease:
        """Hold a task for ``lease_seconds`` from now; the answer tells what clients requested."""
        check_seconds("lease_seconds", lease_seconds)
        check_lease(lease)
        row = await self._engine.fetchrow(
            _SQL["heartbeat"], self._tenant, lease.task_id, lease.fence, lease_seconds, safe=True
        )
        if row is None:
            raise LeaseLostError("task", lease.task_id)
        return _to_lease(row)

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
        text = encode_json(check_text("note", note))
        later = moment(check_run_after(run_after))
        check_extras(wanted, run_after=run_after, progress=progress, ask=ask)
        check_lease(lease)
        row = await self._engine.fetchrow(
            _SQL["transition"],
            *(self._tenant, lease.task_id, lease.fence, wanted.value, text),
            *later,
            bool(progress),
            *message_columns(said),
            *step_columns(ask),
            safe=False,
        )
        return self._queued(row)

    async def complete_many(self, leases: Sequence[Lease]) -> list[TaskState | None]:
        """End the work on several tasks in one statement."""
        checked = check_leases(leases)
        if not checked:
            return []
        ids = [one.task_id for one in checked]
        rows = await self._engine.fetch(
            _SQL["complete"],
            *(self._tenant, ids, [one.fence for one in checked], [one.worker for one in checked]),
            safe=False,
        )
        reached = {task_id: TaskState(state) for task_id, state in rows}
        return [reached.get(task_id) for task_id in ids]

    async def release(self, lease: Lease, *, note: str = "") -> TaskRecord:
        """Hand a task back unfinished, without counting an attempt."""
        text = encode_json(check_text("note", note))
        check_lease(lease)
        row = await self._engine.fetchrow(
            _SQL["release"], self._tenant, lease.task_id, lease.fence, text, safe=False
        )
        return self._queued(row)

    async def recover_expired(self, *, limit: int = 100) -> list[TaskRecord]:
        """Take back tasks whose lease has expired, the longest expired first."""
        check_count("limit", limit)
        rows = await self._engine.fetch(_SQL["recover"], self._tenant, limit, safe=False)
        return [to_task(row) for row in rows]


def _to_lease(row: Any) -> Lease:
    return Lease(
        row["id"],
        row["fence"],
        row["worker"],
        row["lease_expires_at"],
        cancel_requested=row["cancel_requested"],
        pause_requested=row["pause_requested"],
    )
