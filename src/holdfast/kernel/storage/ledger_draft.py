"""A task on its way into a ledger: checked, its JSON as the codec's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from holdfast.kernel.core.checks import (
    check_count,
    check_list,
    check_optional_id,
    check_time,
    check_unreserved,
)
from holdfast.kernel.core.codec import decode_json, encode_object
from holdfast.kernel.core.errors import InvalidInputError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.ledger_records import MAX_ATTEMPTS, TaskRecord, submit_digest
from holdfast.kernel.storage.ledger_stored import StoredMessage, StoredPush

_FOREVER = timedelta(days=4_000_000)
"""More than any two moments of the calendar are apart."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A task that was checked and is not yet stored.

    >>> from holdfast.kernel.core.content import ChatMessage
    >>> Draft.of("writer", ChatMessage.user("hello"), owner="ana").owner
    'ana'
    """

    agent: AgentId
    message: StoredMessage
    context_id: str
    owner: str
    metadata: str
    submit_key: str
    max_attempts: int
    run_after: datetime | timedelta | None
    retry_of: str
    push: tuple[StoredPush, ...] = ()
    """Each of another id."""

    id: str = field(default_factory=new_id)
    new_context_id: str = field(default_factory=new_id)
    """The context of a task that names none."""

    @classmethod
    def of(
        cls,
        agent: AgentId | str,
        message: Any,
        *,
        context_id: object = "",
        owner: object = "",
        metadata: object = None,
        submit_key: object = "",
        max_attempts: object = MAX_ATTEMPTS,
        run_after: object = None,
        retry_of: object = "",
        push: object = (),
    ) -> Self:
        """Check all that is given to ``submit``."""
        attempts = check_count("max_attempts", max_attempts)
        if attempts == 0:
            raise InvalidInputError("max_attempts", "must be 1 or more")
        configs = [StoredPush.of(config) for config in check_list("push", push)]
        return cls(
            agent=AgentId.parse(agent),
            message=StoredMessage.of(message),
            context_id=check_unreserved("context_id", check_optional_id("context_id", context_id)),
            owner=check_unreserved("owner", check_optional_id("owner", owner)),
            metadata=encode_object({} if metadata is None else metadata, field="metadata"),
            submit_key=check_optional_id("submit_key", submit_key),
            max_attempts=attempts,
            retry_of=check_optional_id("retry_of", retry_of),
            push=tuple({config.id: config for config in configs}.values()),
            run_after=check_run_after(run_after),
        )

    @classmethod
    def again(
        cls, task: TaskRecord, first: StoredMessage, *, submit_key: str, now: datetime
    ) -> Self:
        """The work of a task once more; its first message under an id of its own."""
        return cls(
            agent=task.agent,
            message=StoredMessage(new_id(), now, first.payload),
            context_id=task.context_id,
            owner=task.owner,
            metadata=encode_object(task.metadata, field="metadata"),
            submit_key=submit_key,
            max_attempts=task.max_attempts,
            run_after=None,
            retry_of=task.id,
        )

    def digest(self) -> str:
        """What its submit key stands for; without one, nothing."""
        if not self.submit_key:
            return ""
        return submit_digest(
            agent=self.agent,
            message=self.message.load(),
            context_id=self.context_id,
            metadata=decode_json(self.metadata),
            max_attempts=self.max_attempts,
            run_after=self.run_after,
            retry_of=self.retry_of,
        )


def check_run_after(when: object) -> datetime | timedelta | None:
    """A moment, or how far it is from the engine's now.

    >>> check_run_after(timedelta(seconds=5))
    datetime.timedelta(seconds=5)
    """
    if when is None or isinstance(when, timedelta):
        if when is not None and abs(when) > _FOREVER:
            raise beyond_the_calendar()
        return when
    return check_time("run_after", when)


def beyond_the_calendar() -> InvalidInputError:
    """The error of a ``run_after`` that no date can say.

    >>> beyond_the_calendar().field
    'run_after'
    """
    return InvalidInputError("run_after", "is outside the years 1 to 9999")
