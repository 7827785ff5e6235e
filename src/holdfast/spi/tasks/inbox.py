"""Messages to running tasks, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.records import TaskKey
from holdfast.spi.tasks.stored import StoredStep
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease


class InboxMessage(NamedTuple):
    """A message to a task; ``body`` is JSON text, ``digest`` that of the topic and the body."""

    id: str
    topic: str
    body: str
    digest: str


class InboxStorage(Protocol):
    """The inboxes of one tenant's tasks. Every argument is checked."""

    @abstractmethod
    async def send(self, key: TaskKey, message: InboxMessage, limit: int) -> None:
        """Store a message, unless its id is there, and make the task due if it waits for the topic.

        ``ConflictError`` if its id is there with another digest, if the task has ended or was
        adopted, or if it has ``limit`` messages that were not received.
        """

    @abstractmethod
    async def receive(
        self, lease: Lease, step: StepKey, topic: str, *, last: bool
    ) -> StoredStep | None:
        """Store the oldest message of a topic as the result of a step. Returns the step.

        In one atomic step, so that a message is received once. A stored step is returned as it is.
        Its result is ``{"id": ..., "message": ...}``. Without a message nothing is written and
        ``None`` returned, but with ``last`` a step with nulls is stored.
        """
