"""Push configs and the outbox, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.records import EntryKey, StoredEntry, TaskKey
from holdfast.spi.tasks.stored import StoredPush


class OutboxClaim(NamedTuple):
    """How much of the outbox is claimed, and for how long.

    With ``per_owner`` owners take turns, those with the fewest ``busy`` entries first. No owner
    gets more than ``per_owner`` entries, its busy ones included.
    """

    limit: int
    lease_seconds: float
    per_owner: int | None
    busy: Mapping[str, int]


class FailedDelivery(NamedTuple):
    """A failed delivery: when it is retried, or after how many attempts it is given up."""

    attempts: int
    error: str
    max_attempts: int
    delay: timedelta


class PushStorage(Protocol):
    """The push configs of tasks, and the outbox of undelivered events. Every argument is checked.

    Each message, transition and artifact chunk that an engine stores is in the same step an entry
    of the outbox for each push config of its task.
    """

    @abstractmethod
    async def upsert_push_config(
        self, key: TaskKey, config: StoredPush, max_configs: int | None
    ) -> bool:
        """Store a push config under its id. Returns whether it was stored.

        It is not if the task has ``max_configs`` others. Raises ``NotFoundError`` without the task.
        """

    @abstractmethod
    async def push_configs(self, key: TaskKey, config_id: str | None) -> list[StoredPush]:
        """Return the push configs of a task, or the one of an id, by id."""

    @abstractmethod
    async def delete_push_config(self, key: TaskKey, config_id: str) -> bool:
        """Delete a push config with its entries. Returns whether it was there."""

    @abstractmethod
    async def claim_outbox(self, claim: OutboxClaim) -> list[StoredEntry]:
        """Take entries that are due, the longest due first; they are due again after the lease.

        Of one push config only the first entry that was not given up is taken. The attempts of
        what is returned are counted.
        """

    @abstractmethod
    async def mark_delivered(self, key: EntryKey) -> bool:
        """Delete an entry. Returns whether it was there."""

    @abstractmethod
    async def mark_failed(self, key: EntryKey, failure: FailedDelivery) -> bool:
        """Postpone an entry, or give it up. Returns whether it did.

        It is not if the entry is gone, was given up or has another number of attempts.
        """

    @abstractmethod
    async def outbox(self, key: TaskKey) -> list[StoredEntry]:
        """Return the entries of a task, those that were given up too, by event and then config."""
