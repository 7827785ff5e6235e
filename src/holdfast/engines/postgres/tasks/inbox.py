"""Messages to the running tasks of the ledger on Postgres."""

from __future__ import annotations

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_step
from holdfast.engines.postgres.tasks.view import LedgerView, step_columns
from holdfast.spi.tasks.inbox import InboxMessage, InboxStorage
from holdfast.spi.tasks.records import TaskKey
from holdfast.spi.tasks.stored import StoredStep
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease

_SQL = load("ledger_inbox")


class PostgresInbox(LedgerView, InboxStorage):
    """Stores the messages that running tasks receive."""

    async def send(self, key: TaskKey, message: InboxMessage, limit: int) -> None:
        """Store a message, unless it is stored already. Wake the task if it waits for it."""
        await self._engine.fetchval(_SQL["send"], self._tenant, *key, *message, limit, safe=True)

    async def receive(
        self, lease: Lease, step: StepKey, topic: str, *, last: bool
    ) -> StoredStep | None:
        """Store the oldest message of a topic as the result of a step, or return ``None``."""
        row = await self._engine.fetchrow(
            _SQL["receive"],
            *(self._tenant, lease.task_id, lease.fence, *step_columns(step), topic, last),
            safe=True,
        )
        return None if row is None else to_step(row)
