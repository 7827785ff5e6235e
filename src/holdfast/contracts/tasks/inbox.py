"""Messages to running tasks: sent by clients, received by handlers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.tasks.checks import check_lease, check_step
from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.spi.tasks.inbox import InboxMessage
from holdfast.spi.tasks.stored import text_bytes
from holdfast.values.checks import check_absent_id, check_id
from holdfast.values.codec import encode_json
from holdfast.values.errors import InvalidInputError
from holdfast.values.ids import new_id
from holdfast.values.owners import Owner
from holdfast.values.tasks.events import StepKey, StepRecord
from holdfast.values.tasks.records import Lease, content_digest

TOPIC = "messages"
"""The topic of a message that names none."""

MAX_MESSAGE_BYTES = 262_144
"""The largest message, as JSON text."""

MAX_WAITING = 1_000
"""How many messages may wait in the inbox of a task."""


@runtime_checkable
class InboxLedger(Protocol):
    """An inbox for each task, by topic and in order.

    A message is received by storing it as the result of a step, in the same transaction and under
    the fence of the lease. So each is received once, and a handler that runs again gets the same
    message again. A task that waits for a message (``transition`` to ``submitted`` with ``topic``)
    stays in the queue, and workers cannot claim it before its ``run_after``, unless a message of
    the topic arrives.

    Promises:

    - a sent message is received exactly as it went in
    - messages of a topic are received in the order they were sent
    - topics are received apart from each other
    - a message is received once
    - a message that was received under a step key comes again under that key
    - a stale worker receives nothing
    - a task without a message receives none and nothing is written
    - the last look for a message stores that there was none
    - a task that waits for a topic is due when a message of it is sent
    - a message that is there before the task waits makes it due at once
    - a task that waits for a topic is due at its run_after
    - a message that races the wait for it is not lost
    - a task that was paused while its message came goes on when it is resumed
    - the same message id twice is sent once
    - the same message id with another message or topic is a conflict
    - a message to an ended task is refused
    - a message to an unknown task or another owner's is not found
    - one tenant never sends to another's tasks
    - an inbox takes 1000 messages and refuses the next
    - a message that is too large or not json is refused and nothing is sent
    - a topic is waited for only with submitted
    - messages are still there after a reopen
    """

    @abstractmethod
    async def send(
        self,
        task_id: str,
        message: Any,
        *,
        topic: str = TOPIC,
        message_id: str | None = None,
        owner: Owner = None,
    ) -> str:
        """Send a message, any JSON up to 256 KiB, to a task that has not ended. Returns its id.

        ``message_id`` makes it idempotent: a retry has no further effect. ::

            await ledger.send(task.id, {"approved": True}, topic="approval", message_id="click-7")
        """
        ...

    @abstractmethod
    async def receive(
        self, lease: Lease, key: StepKey, *, topic: str = TOPIC, last: bool = False
    ) -> StepRecord | None:
        """Take the oldest message of a topic and store it as the step ``key``. Returns the step.

        Its result is ``{"id": ..., "message": ...}``. If the step is stored already, it is
        returned. Without a message the method returns ``None``; with ``last=True`` it stores and
        returns a step with ``None`` for both values. ::

            step = await ledger.receive(lease, StepKey("approval", kind="receive"))
        """
        ...


class InboxCalls(LedgerCalls, InboxLedger):
    """Implements ``InboxLedger``: checks the arguments, then calls the engine's storage."""

    async def send(
        self,
        task_id: str,
        message: Any,
        *,
        topic: str = TOPIC,
        message_id: str | None = None,
        owner: Owner = None,
    ) -> str:
        """Send a message to a task that has not ended. Returns its id."""
        body, name = encode_json(message, field="message"), check_id("topic", topic)
        if text_bytes(body) > MAX_MESSAGE_BYTES:
            raise InvalidInputError(
                "message",
                f"must be at most {MAX_MESSAGE_BYTES} bytes as JSON, not {text_bytes(body)}: store "
                "it as a blob and send its ref",
            )
        sent = InboxMessage(
            check_absent_id("message_id", message_id) or new_id(),
            name,
            body,
            content_digest([name, message], field="message"),
        )
        await self._storage.send(task_key(task_id, owner), sent, MAX_WAITING)
        return sent.id

    async def receive(
        self, lease: Lease, key: StepKey, *, topic: str = TOPIC, last: bool = False
    ) -> StepRecord | None:
        """Take the oldest message of a topic and store it as a step. Returns the step."""
        step = await self._storage.receive(
            check_lease(lease),
            check_step(key, field="key"),
            check_id("topic", topic),
            last=bool(last),
        )
        return None if step is None else step.load(lease.task_id)
