"""Tasks that continue from what another task stored: resume a failed one, or fork any."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.spi.tasks.forks import ForkDraft, before_the_message
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.checks import (
    check_absent_id,
    check_count,
    check_id,
    check_ids,
    check_unreserved,
)
from holdfast.values.codec import decode_json
from holdfast.values.content import ChatMessage
from holdfast.values.errors import IllegalTransitionError
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import Owner
from holdfast.values.tasks.records import TaskRecord, content_digest


@runtime_checkable
class ForkLedger(Protocol):
    """New tasks with the steps, answers and artifacts of another one.

    The end of a task is final, so a failed task is not opened again: a new task, linked by
    ``retry_of``, takes over what it stored. ``retry`` takes over nothing: it is a fresh start.

    Promises:

    - a fork has the messages, steps, answers and artifacts that were stored until then
    - a fork leaves the task as it was
    - a fork is in a context of its own
    - a fork can begin with another message
    - a fork with a submit key is made once
    - a fork before the first message is refused
    - resume_failed goes on from the last stored step, in the same context
    - resume_failed adds no message to the context
    - resume_failed of a task that has not failed is refused
    - a step that was taken over is not stored again
    - a fork takes over the children that were completed and no others
    - the chunks of a step that was taken over are restored once
    - a blob of a fork is held elsewhere until the fork has ended
    - another owner's task can be neither forked nor resumed
    - a task that somebody else runs can be neither forked nor resumed
    """

    @abstractmethod
    async def resume_failed(
        self,
        task_id: str,
        *,
        owner: Owner = None,
        submit_key: str | None = None,
        by: str | None = None,
    ) -> TaskRecord:
        """Submit a task that continues from the last stored step of a failed one.

        Steps, answers and messages that are stored are not repeated. Results that were stored as
        blobs are there for as long as blobs live: resume before they expire.

        ::

            again = await ledger.resume_failed(failed.id)
        """
        ...

    @abstractmethod
    async def fork(
        self,
        task_id: str,
        at_seq: int,
        *,
        message: ChatMessage | None = None,
        owner: Owner = None,
        submit_key: str | None = None,
        by: str | None = None,
    ) -> TaskRecord:
        """Submit a task that continues from another one, as that was after event ``at_seq``.

        The other task may be in any state. ``message`` replaces the first message. If that changes
        the arguments of a stored step, the step raises an error in the handler: fork before that
        step.

        ::

            other = await ledger.fork(task.id, event.seq)
        """
        ...

    @abstractmethod
    async def held_elsewhere(self, task_id: str, refs: Sequence[str]) -> set[str]:
        """Return which of these blobs another task uses that has not ended. For workers.

        ::

            shared = await ledger.held_elsewhere(task.id, refs)
        """
        ...


class ForkCalls(LedgerCalls, ForkLedger):
    """Implements ``ForkLedger``: checks the arguments, then calls the engine's storage."""

    async def resume_failed(
        self,
        task_id: str,
        *,
        owner: Owner = None,
        submit_key: str | None = None,
        by: str | None = None,
    ) -> TaskRecord:
        """Submit a task that continues from the last stored step of a failed one."""
        try:
            return await self._fork(task_id, owner, submit_key, by, at_seq=None, message=None)
        except IllegalTransitionError as error:
            raise has_not_failed(task_id, error.from_state) from None

    async def fork(
        self,
        task_id: str,
        at_seq: int,
        *,
        message: ChatMessage | None = None,
        owner: Owner = None,
        submit_key: str | None = None,
        by: str | None = None,
    ) -> TaskRecord:
        """Submit a task that continues from another one, as that was after event ``at_seq``."""
        if check_count("at_seq", at_seq) < 2:
            raise before_the_message()
        said = None if message is None else StoredMessage.of(message)
        return await self._fork(task_id, owner, submit_key, by, at_seq=at_seq, message=said)

    async def held_elsewhere(self, task_id: str, refs: Sequence[str]) -> set[str]:
        """Return which of these blobs another task uses that has not ended."""
        named = check_id("task_id", task_id)
        return set(await self._storage.held_elsewhere(named, check_ids("refs", refs)))

    async def _fork(
        self,
        task_id: str,
        owner: Owner,
        submit_key: str | None,
        by: str | None,
        *,
        at_seq: int | None,
        message: StoredMessage | None,
    ) -> TaskRecord:
        key = task_key(task_id, owner)
        name = check_unreserved("submit_key", check_absent_id("submit_key", submit_key))
        said = None if message is None else decode_json(message.payload)
        draft = ForkDraft(
            *(new_id(), new_id(), at_seq, at_seq is None, message, name),
            content_digest(["fork", key.task_id, at_seq, said]) if name else "",
            check_absent_id("by", by),
        )
        return (await self._storage.fork(key, draft)).load()


def has_not_failed(task_id: str, state: str) -> IllegalTransitionError:
    """Return the error for resuming a task that has not failed.

    >>> str(has_not_failed("t1", "working"))
    "task 't1' has not failed, it is working: fork it, or retry it when it has ended"
    """
    return IllegalTransitionError(
        "task",
        task_id,
        from_state=state,
        to_state=TaskState.SUBMITTED,
        message=f"task {task_id!r} has not failed, it is {state}: "
        "fork it, or retry it when it has ended",
    )
