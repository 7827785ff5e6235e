"""Push configs, and the outbox entries that wait for delivery."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.values.checks import check_id, check_text
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.events import TaskEvent


@dataclass(frozen=True, slots=True)
class PushConfig:
    """Where to send the events of a task. Its ``repr`` does not show the secrets.

    >>> PushConfig("p1", "https://example.org/hook", token="secret")
    PushConfig(id='p1', url='https://example.org/hook')
    """

    id: str
    url: str
    token: str = field(default="", repr=False)
    authentication: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_id("push.id", self.id)
        check_text("push.token", self.token)
        if not check_text("push.url", self.url):
            raise InvalidInputError("push.url", "must not be empty")


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One event that is to be delivered to the URL of one push config.

    >>> from holdfast.values.lifecycle import Actor
    >>> from holdfast.values.tasks.events import TaskRequest
    >>> now = datetime(2030, 1, 1)
    >>> event = TaskEvent("t1", 4, now, Actor.CLIENT, 1, TaskRequest("cancel"))
    >>> OutboxEntry("o1", PushConfig("p1", "https://example.org"), event, now).attempts
    0
    """

    id: str
    config: PushConfig
    event: TaskEvent
    due_at: datetime
    """The time of the next attempt; for a claimed entry, when another process may claim it."""

    attempts: int = 0
    """How often it was claimed."""

    last_error: str = ""
    dead: bool = False
    """Whether it was given up: it is kept for inspection, and not retried."""

    owner: str = ""
    """The owner of its task."""
