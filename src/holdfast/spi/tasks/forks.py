"""Forks: tasks that continue from what another task stored, as an engine stores them."""

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
    """A new task that copies what another task stored up to ``at_seq`` (``None``: its last event).

    With ``failed`` the original must have failed, and the fork is in its context. Otherwise the
    fork gets the context ``new_session_id``. ``message`` replaces the first message.
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
    """Return the error for a fork at an event before the first message.

    >>> before_the_message().field
    'at_seq'
    """
    return InvalidInputError("at_seq", "must be 2 or more: the first message is event 2")


class ForkStorage(Protocol):
    """The tasks of one tenant. The caller checks all arguments."""

    @abstractmethod
    async def fork(self, key: TaskKey, draft: ForkDraft) -> TaskSnapshot:
        """Store a fork as ``submitted``, or return the one with its submit key.

        Its ``retry_of`` is the original. It has the original's agent, owner, metadata and limit of
        attempts. It gets copies of the messages and steps up to the event, in order, with the
        engine's time and fence 0; and of the artifact chunks that were current then, or that belong
        to such a step. In the same context, copied messages do not count as messages of the context
        again. The fork has the original's cleanup marks of blobs.

        Raises ``NotFoundError``, ``adopted``, and ``IllegalTransitionError`` if ``failed`` is set
        and the original has not failed.
        """

    @abstractmethod
    async def held_elsewhere(self, task_id: str, refs: Sequence[str]) -> Collection[str]:
        """Return the refs that another task also uses: its cleanup mark for the ref is not due."""
