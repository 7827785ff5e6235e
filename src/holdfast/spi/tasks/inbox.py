"""Messages to running tasks, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.records import TaskKey
from holdfast.spi.tasks.stored import StoredStep
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease


class InboxMessage(NamedTuple):
    """A message to a task; ``body`` is JSON text, ``digest`` is of the topic and the body."""

    id: str
    topic: str
    body: str
    digest: str


class InboxStorage(Protocol):
    """The inboxes of one tenant's tasks. The caller checks all arguments."""

    @abstractmethod
    async def send(self, key: TaskKey, message: InboxMessage, limit: int) -> None:
        """Store a message unless its id is stored; make the task due if it waits for the topic.

        Raises ``ConflictError`` if its id is stored with another digest, if the task has ended or
        was adopted, or if the task has ``limit`` messages that it has not received.
        """

    @abstractmethod
    async def receive(
        self, lease: Lease, step: StepKey, topic: str, *, last: bool
    ) -> StoredStep | None:
        """Store the oldest message of a topic as the result of a step. Returns the step.

        This is one atomic step, so that a message is received once. If the step is already stored,
        it is returned. Its result is ``{"id": ..., "message": ...}``. Without a message, nothing is
        written and ``None`` is returned; with ``last``, a step with nulls is stored instead.
        """
