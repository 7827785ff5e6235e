"""Telling others about a task: push configs, and the outbox that deliveries go through."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from holdfast.kernel.storage.ledger_events import TaskEvent
from holdfast.kernel.storage.ledger_records import LEASE_SECONDS
from holdfast.values.checks import check_count, check_id, check_optional_id, check_text
from holdfast.values.errors import InvalidInputError

DELIVERY_ATTEMPTS = 12
"""How often a delivery is tried before it is given up, unless told."""


@dataclass(frozen=True, slots=True)
class PushConfig:
    """Where to send the news of a task; what proves who sends it stays out of its repr.

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
    """One event on its way to one push config.

    >>> from holdfast.values.lifecycle import Actor
    >>> from holdfast.kernel.storage.ledger_events import TaskRequest
    >>> now = datetime(2030, 1, 1)
    >>> event = TaskEvent("t1", 4, now, Actor.CLIENT, 1, TaskRequest("cancel"))
    >>> OutboxEntry("o1", PushConfig("p1", "https://example.org"), event, now).attempts
    0
    """

    id: str
    config: PushConfig
    event: TaskEvent
    due_at: datetime
    """When it is next tried; for a claimed one, when somebody else may try it."""

    attempts: int = 0
    """How often it was claimed."""

    last_error: str = ""
    dead: bool = False
    """Given up: kept to be looked at, and not tried again."""

    owner: str = ""
    """Whose task it is about."""


def delivery_delay(attempts: int) -> timedelta:
    """How long to wait after so many failed attempts: doubling from a second up to an hour.

    >>> delivery_delay(1).total_seconds(), delivery_delay(4).total_seconds()
    (1.0, 8.0)
    """
    return timedelta(seconds=min(2.0 ** min(attempts - 1, 12), 3600.0))


def too_many_configs(most: int) -> InvalidInputError:
    """What one push config too many is refused with.

    >>> str(too_many_configs(20))
    'push: the task has 20 push configs, which is the limit: delete one first'
    """
    return InvalidInputError(
        "push", f"the task has {most} push configs, which is the limit: delete one first"
    )


def check_busy(busy: object) -> dict[str, int]:
    """How many entries of each owner are on their way.

    >>> check_busy(None), check_busy({"ana": 2})
    ({}, {'ana': 2})
    """
    if not isinstance(busy, Mapping):
        if busy is not None:
            raise InvalidInputError("busy", f"must be a mapping, not {type(busy).__name__}")
        return {}
    return {
        check_optional_id("busy", owner): check_count("busy", count)
        for owner, count in busy.items()
    }


@runtime_checkable
class PushLedger(Protocol):
    """Push configs of tasks, and the deliveries that they cause.

    An entry is written to the outbox in the same step as the message, the transition or the
    artifact chunk that it announces, one for each push config that the task has. Deliveries are at
    least once: who dies between sending and ``mark_delivered`` leaves the entry to be sent again.

    Promises:

    - a push config comes back as it was stored
    - a task has several push configs, listed by id
    - a push config with a known id is replaced
    - one push config more than allowed is refused, and a known one is replaced
    - 10 concurrent push configs are no more than allowed
    - a deleted push config is gone
    - deleting a push config that is not there is false
    - push configs of an unknown task are none and cannot be stored
    - another owner's push configs are not found
    - a push config's secrets are not in its repr
    - push configs are still there after a reopen
    - a push config given at submit hears of the submit itself
    - every message, transition and artifact chunk is announced to every push config
    - steps and requests are not announced
    - a task without push configs announces nothing
    - an entry carries the event and the push config
    - claimed entries are not claimed again while their lease lasts
    - an entry whose claimer died is claimed again
    - a delivered entry is gone
    - entries of one push config are claimed one after the other, in order
    - a failing entry does not hold up other push configs
    - a failed delivery waits longer each time
    - a delivery that fails too often is given up and kept
    - after a given up delivery the next ones go on
    - a late failure report does not disturb the next claimer
    - marking an entry that is gone is false
    - deleting a push config removes its deliveries
    - 20 concurrent claims of the outbox give each entry once
    - a limit of zero claims no entry
    - of each owner at most per_owner entries are claimed, those that are busy counted
    - owners take turns, first those with the fewest entries that are busy
    - one tenant never claims another's entries
    - undelivered entries are still there after a reopen
    """

    @abstractmethod
    async def upsert_push_config(
        self,
        task_id: str,
        config: PushConfig,
        *,
        owner: str | None = "",
        max_configs: int | None = None,
    ) -> None:
        """Store a push config under its id; ``NotFoundError`` if there is no such task.

        ``InvalidInputError`` if the task has ``max_configs`` others already.
        ::

            await ledger.upsert_push_config(task.id, PushConfig("p1", "https://example.org/hook"))
        """
        ...

    @abstractmethod
    async def get_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = ""
    ) -> PushConfig | None:
        """One push config of a task, or ``None``.

        ::

            config = await ledger.get_push_config(task.id, "p1")
        """
        ...

    @abstractmethod
    async def list_push_configs(self, task_id: str, *, owner: str | None = "") -> list[PushConfig]:
        """The push configs of a task, ordered by id.

        ::

            configs = await ledger.list_push_configs(task.id)
        """
        ...

    @abstractmethod
    async def delete_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = ""
    ) -> bool:
        """Remove a push config with whatever was on its way to it; whether it was there.

        ::

            await ledger.delete_push_config(task.id, "p1")
        """
        ...

    @abstractmethod
    async def claim_outbox(
        self,
        *,
        limit: int = 100,
        lease_seconds: float = LEASE_SECONDS,
        per_owner: int | None = None,
        busy: Mapping[str, int] | None = None,
    ) -> list[OutboxEntry]:
        """Take entries that are due, the oldest first; nobody else gets them for the lease.

        Of one push config at most one entry is out at a time, so that news arrive in order. With
        ``per_owner`` owners take turns, and none has more than that many entries, with those that
        ``busy`` counts for it.

        ::

            for entry in await ledger.claim_outbox(limit=20):
                await send(entry.config, entry.event)
                await ledger.mark_delivered(entry)
        """
        ...

    @abstractmethod
    async def mark_delivered(self, entry: OutboxEntry) -> bool:
        """Remove an entry that has arrived; whether it was still there.

        ::

            await ledger.mark_delivered(entry)
        """
        ...

    @abstractmethod
    async def mark_failed(
        self, entry: OutboxEntry, error: str, *, max_attempts: int = DELIVERY_ATTEMPTS
    ) -> bool:
        """Let an entry wait for its next attempt, or give it up after ``max_attempts``.

        Nothing happens, and the answer is false, when the entry is gone or somebody else has
        claimed it since.

        ::

            await ledger.mark_failed(entry, "503 Service Unavailable")
        """
        ...

    @abstractmethod
    async def list_outbox(self, task_id: str, *, owner: str | None = "") -> list[OutboxEntry]:
        """What is still on its way for a task, and what was given up, in order.

        ::

            stuck = [entry for entry in await ledger.list_outbox(task.id) if entry.dead]
        """
        ...
