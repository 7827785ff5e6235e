"""A checked task, to be stored in a ledger: its JSON is the codec's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

from holdfast.spi.tasks.stored import StoredMessage, StoredPush
from holdfast.values.checks import check_time
from holdfast.values.codec import decode_json, encode_object
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id
from holdfast.values.tasks.records import MAX_ATTEMPTS, TaskRecord, content_digest
from holdfast.values.tasks.trace import TRACE_KEY

_FOREVER = timedelta(days=4_000_000)
"""Longer than the time between any two dates."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A task that was checked and is not yet stored.

    >>> from holdfast.values.content import ChatMessage
    >>> hello = StoredMessage.of(ChatMessage.user("hello"))
    >>> Draft(AgentId("", "writer"), hello, owner="ana").digest()
    ''
    """

    agent: AgentId
    message: StoredMessage
    session_id: str = ""
    owner: str = ""
    metadata: str = "{}"
    submit_key: str = ""
    max_attempts: int = MAX_ATTEMPTS
    run_after: datetime | timedelta | None = None
    retry_of: str = ""
    push: tuple[StoredPush, ...] = ()
    """Push configs with different ids."""
    priority: int = 0
    key: str = ""
    """Tasks with the same key share the limits per key of their agent."""

    by: str = ""
    """Who submits the task; it is not part of the digest."""

    id: str = field(default_factory=new_id)
    new_session_id: str = field(default_factory=new_id)
    """The context of the task if the caller names none."""

    identity: str = ""
    """The digest of the plain content, if what is stored is encrypted; else empty."""

    @classmethod
    def again(
        cls, task: TaskRecord, first: StoredMessage, *, submit_key: str, now: datetime, by: str = ""
    ) -> Self:
        """Return a draft that repeats a task; its first message gets a new id."""
        return cls(
            agent=task.agent,
            message=StoredMessage(new_id(), now, first.payload),
            session_id=task.session_id,
            owner=task.owner,
            metadata=encode_object(task.metadata, field="metadata"),
            submit_key=submit_key,
            max_attempts=task.max_attempts,
            retry_of=task.id,
            priority=task.priority,
            key=task.key,
            by=by,
        )

    def digest(self) -> str:
        """Return a digest of the content without the message's id; ``""`` without a submit key."""
        return self.content_digest() if self.submit_key else ""

    def content_digest(self) -> str:
        """Return a digest of the content without the message's id."""
        if self.identity:
            return self.identity
        when = self.run_after
        if isinstance(when, timedelta):
            due = f"+{when.total_seconds()}"
        else:
            due = when.astimezone(UTC).isoformat() if when else ""
        metadata = decode_json(self.metadata)
        # Another process retries it in another span: that is no other content.
        metadata.pop(TRACE_KEY, None)
        content = {
            "agent": str(self.agent),
            "message": decode_json(self.message.payload),
            "context_id": self.session_id,  # its name when the first digests were stored
            "metadata": metadata,
            "max_attempts": self.max_attempts,
            "run_after": due,
            "retry_of": self.retry_of,
        }
        # Only where they are given: digests of tasks without them were stored before.
        if self.priority:
            content["priority"] = self.priority
        if self.key:
            content["key"] = self.key
        return content_digest(content, field="submit")


def check_run_after(when: object) -> datetime | timedelta | None:
    """Check a ``run_after``: a time, or a ``timedelta`` from the engine's current time.

    >>> check_run_after(timedelta(seconds=5))
    datetime.timedelta(seconds=5)
    """
    if when is None or isinstance(when, timedelta):
        if when is not None and abs(when) > _FOREVER:
            raise beyond_the_calendar()
        return when
    return check_time("run_after", when)


def beyond_the_calendar() -> InvalidInputError:
    """Return the error of a ``run_after`` that is out of the range of dates.

    >>> beyond_the_calendar().field
    'run_after'
    """
    return InvalidInputError("run_after", "is outside the years 1 to 9999")
