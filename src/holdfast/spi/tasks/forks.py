"""Tasks that go on from what another task stored, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.errors import InvalidInputError

CHILD_STEP = "child"
"""The kind of a step that names a child. A fork takes it over if the child is completed."""


class ForkDraft(NamedTuple):
    """A new task with what another one stored until an event (``None``: its last).

    ``failed``: the other one must have failed, and the new one is in its context. Else it gets
    ``new_session_id``. ``message`` replaces the first one.
    """

    id: str
    new_session_id: str
    at_seq: int | None
    failed: bool
    message: StoredMessage | None
    submit_key: str
    digest: str
    by: str = ""


def before_the_message() -> InvalidInputError:
    """A fork that would have no message.

    >>> before_the_message().field
    'at_seq'
    """
    return InvalidInputError("at_seq", "must be 2 or more: the first message is event 2")


class ForkStorage(Protocol):
    """The tasks of one tenant. Every argument is checked."""

    @abstractmethod
    async def fork(self, key: TaskKey, draft: ForkDraft) -> TaskSnapshot:
        """Store a task as ``submitted``, linked by ``retry_of``, or return the one of its key.

        It has the other's agent, owner, metadata and limit of attempts; its messages and steps
        until the event, in order, as events of its own at the engine's time and with fence 0; and
        the chunks that its artifacts were made of then, or that belong to such a step. In the same
        context, copied messages are not messages of the context again. The new task has the
        other's cleanup marks of blobs.

        Raises ``NotFoundError``, ``adopted``, and ``IllegalTransitionError`` if ``failed`` and it
        has not failed.
        """

    @abstractmethod
    async def held_elsewhere(self, task_id: str, refs: Sequence[str]) -> Collection[str]:
        """Return those of the refs that a mark of another task, which is not due, has."""
