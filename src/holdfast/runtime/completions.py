"""Completes tasks of a tenant: those that end at the same time in one call."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.runtime.batches import Batches
from holdfast.runtime.running_task import RunningTask
from holdfast.values.errors import (
    HoldfastError,
    LeaseLostError,
    TimedOutError,
    UnavailableError,
)
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import Completion

AT_ONCE = 50
"""How many tasks are completed by one call: each may have a message and a result of a MiB."""


class Completions:
    """The queue of completions of one tenant's tasks in this process.

    ::

        await Completions(state.tasks).complete(held, Completion(held.lease, result=3))
    """

    def __init__(self, ledger: TaskLedger) -> None:
        self._ledger = ledger
        self._batches: Batches[Completion, TaskState] = Batches(self._send, most=AT_ONCE)

    async def complete(self, held: RunningTask, end: Completion) -> TaskState:
        """Complete a task and return its new state. Raises what ``transition`` would raise.

        The completions that wait at the same time are sent as one request. The lease is that which
        the task has now.
        """
        return await self._batches.add(Completion(held.lease, end.message, end.result))

    async def _send(self, ends: list[Completion]) -> Sequence[TaskState | Exception]:
        try:
            reached = await self._ledger.complete_many(ends)
        except (UnavailableError, TimedOutError):
            raise
        except Exception:  # noqa: BLE001 - it may be that of one: each gets its own answer
            reached = [None] * len(ends)
        return [state or await self._alone(end) for end, state in zip(ends, reached, strict=True)]

    async def _alone(self, end: Completion) -> TaskState | Exception:
        """Complete a task that ``complete_many`` left as it is, or return the reason."""
        try:
            ended = await self._ledger.transition(
                end.lease, TaskState.COMPLETED, message=end.message, result=end.result
            )
        except LeaseLostError as error:
            return await self._before(end) or error
        except Exception as error:  # noqa: BLE001 - the task's run raises it
            return error
        return ended.state

    async def _before(self, end: Completion) -> TaskState | None:
        """Return the state of a task that an earlier call completed and whose answer was lost."""
        try:
            found = await self._ledger.get(
                end.lease.task_id, owner=ANY_OWNER, messages_limit=0, artifacts=False
            )
        except HoldfastError:
            return None
        if found is None or found.fence != end.lease.fence:
            return None
        return found.state if found.state is TaskState.COMPLETED else None
