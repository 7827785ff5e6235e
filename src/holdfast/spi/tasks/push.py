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

    ``busy`` is how many entries of each owner are being delivered now. With ``per_owner`` owners
    take turns, the one with the fewest busy entries first, and no owner has more than ``per_owner``
    entries in delivery.
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
    """The push configs of tasks, and the outbox of undelivered events.

    The caller checks all arguments. For each message, transition and artifact chunk that it stores,
    an engine adds in the same step an entry to the outbox for each push config of the task.
    """

    @abstractmethod
    async def upsert_push_config(
        self, key: TaskKey, config: StoredPush, max_configs: int | None
    ) -> bool:
        """Store a push config under its id. Returns whether it was stored.

        It is not stored if the task has ``max_configs`` others. Raises ``NotFoundError`` if there
        is no such task.
        """

    @abstractmethod
    async def push_configs(self, key: TaskKey, config_id: str | None) -> list[StoredPush]:
        """Return the push configs of a task, ordered by id, or only the one with ``config_id``."""

    @abstractmethod
    async def delete_push_config(self, key: TaskKey, config_id: str) -> bool:
        """Delete a push config with its entries. Returns whether it was there."""

    @abstractmethod
    async def claim_outbox(self, claim: OutboxClaim) -> list[StoredEntry]:
        """Claim entries to deliver, the longest due first; they are due again after the lease.

        Of each push config only the first entry that was not given up is claimed. The claim counts
        as an attempt.
        """

    @abstractmethod
    async def mark_delivered(self, key: EntryKey) -> bool:
        """Delete an entry. Returns whether it was there."""

    @abstractmethod
    async def mark_failed(self, key: EntryKey, failure: FailedDelivery) -> bool:
        """Postpone an entry, or give it up. Returns whether it did.

        It does not if the entry is deleted, was given up or has another number of attempts.
        """

    @abstractmethod
    async def outbox(self, key: TaskKey) -> list[StoredEntry]:
        """Return the entries of a task, also those given up, ordered by event and then config."""
