"""Completes tasks without a result: those of a tenant that end together in one call."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.runtime.batches import Batches
from holdfast.runtime.running_task import RunningTask
from holdfast.values.errors import LeaseLostError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import Lease

AT_ONCE = 500


class Completions:
    """The queue of completions of one tenant's tasks in this process.

    ::

        await Completions(state.tasks).complete(held)
    """

    def __init__(self, ledger: TaskLedger) -> None:
        self._ledger = ledger
        self._batches: Batches[Lease, TaskState] = Batches(self._send, most=AT_ONCE)

    async def complete(self, held: RunningTask) -> TaskState:
        """Complete a task and return its new state. Raises ``LeaseLostError`` if it lost its lease.

        The completions that wait at the same time are sent as one request.
        """
        return await self._batches.add(held.lease)

    async def _send(self, leases: list[Lease]) -> Sequence[TaskState | Exception]:
        reached = await self._ledger.complete_many(leases)
        return [
            state or LeaseLostError("task", lease.task_id)
            for lease, state in zip(leases, reached, strict=True)
        ]
