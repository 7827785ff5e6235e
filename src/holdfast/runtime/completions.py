"""Batches completions: while one request to the ledger is in flight, the next ones are queued."""

from __future__ import annotations

import asyncio

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.runtime.running_task import RunningTask
from holdfast.values.errors import HoldfastError, LeaseLostError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import Lease


class Completions:
    """The queue of completions of one tenant's tasks in this process.

    ::

        await Completions(state.tasks).complete(held)
    """

    def __init__(self, ledger: TaskLedger) -> None:
        self._ledger = ledger
        self._waiting: list[tuple[Lease, asyncio.Future[TaskState]]] = []
        self._sender: asyncio.Task[None] | None = None

    async def complete(self, held: RunningTask) -> TaskState:
        """Complete a task and return its new state. Raises ``LeaseLostError`` if it lost its lease.

        The completions that wait at the same time are sent as one request.
        """
        answer: asyncio.Future[TaskState] = asyncio.get_running_loop().create_future()
        self._waiting.append((held.lease, answer))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        return await answer

    async def _send(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                reached = await self._ledger.complete_many([lease for lease, _ in batch])
            except HoldfastError as error:
                for _, answer in batch:
                    _settle(answer, error)
                continue
            for (lease, answer), state in zip(batch, reached, strict=True):
                _settle(answer, state or LeaseLostError("task", lease.task_id))


def _settle(answer: asyncio.Future[TaskState], outcome: TaskState | HoldfastError) -> None:
    if answer.done():
        return
    if isinstance(outcome, HoldfastError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
