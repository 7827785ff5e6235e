"""Push configs, and the outbox that deliveries go through."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol, runtime_checkable

from holdfast.contracts.tasks.checks import check_entry
from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.spi.tasks.push import FailedDelivery, OutboxClaim
from holdfast.spi.tasks.records import EntryKey
from holdfast.spi.tasks.stored import StoredPush
from holdfast.values.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_optional_id,
    check_seconds,
    check_text,
)
from holdfast.values.errors import InvalidInputError
from holdfast.values.owners import Owner
from holdfast.values.tasks.push import OutboxEntry, PushConfig
from holdfast.values.tasks.records import LEASE_SECONDS

DELIVERY_ATTEMPTS = 12
"""The default number of attempts before a delivery is given up."""


@runtime_checkable
class PushLedger(Protocol):
    """Push configs of tasks, and the deliveries that they cause.

    An entry is written to the outbox in the same step as the message, the transition or the
    artifact chunk that it announces, one for each push config that the task has. Delivery is at
    least once: if a process dies between sending and ``mark_delivered``, the entry is sent again.

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
        owner: Owner = None,
        max_configs: int | None = None,
    ) -> None:
        """Store a push config under its id. Raises ``NotFoundError`` if there is no such task.

        Raises ``InvalidInputError`` if the task has ``max_configs`` others already.
        ::

            await ledger.upsert_push_config(task.id, PushConfig("p1", "https://example.org/hook"))
        """
        ...

    @abstractmethod
    async def get_push_config(
        self, task_id: str, config_id: str, *, owner: Owner = None
    ) -> PushConfig | None:
        """Return one push config of a task, or ``None``.

        ::

            config = await ledger.get_push_config(task.id, "p1")
        """
        ...

    @abstractmethod
    async def list_push_configs(self, task_id: str, *, owner: Owner = None) -> list[PushConfig]:
        """Return the push configs of a task, ordered by id.

        ::

            configs = await ledger.list_push_configs(task.id)
        """
        ...

    @abstractmethod
    async def delete_push_config(
        self, task_id: str, config_id: str, *, owner: Owner = None
    ) -> bool:
        """Delete a push config and its undelivered entries. Returns whether it was there.

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
        """Claim entries that are due, the oldest first, for ``lease_seconds``.

        Of one push config at most one entry is claimed at a time, so that events arrive in order.
        ``per_owner`` limits how many entries of one owner are in delivery, including the number
        that ``busy`` has for the owner; owners take turns.

        ::

            for entry in await ledger.claim_outbox(limit=20):
                await send(entry.config, entry.event)
                await ledger.mark_delivered(entry)
        """
        ...

    @abstractmethod
    async def mark_delivered(self, entry: OutboxEntry) -> bool:
        """Delete a delivered entry. Returns whether it was still there.

        ::

            await ledger.mark_delivered(entry)
        """
        ...

    @abstractmethod
    async def mark_failed(
        self, entry: OutboxEntry, error: str, *, max_attempts: int = DELIVERY_ATTEMPTS
    ) -> bool:
        """Schedule the next attempt of an entry, or give it up after ``max_attempts``.

        Returns ``False``, with nothing changed, if the entry is gone or was claimed again since.

        ::

            await ledger.mark_failed(entry, "503 Service Unavailable")
        """
        ...

    @abstractmethod
    async def list_outbox(self, task_id: str, *, owner: Owner = None) -> list[OutboxEntry]:
        """Return the undelivered and the given up entries of a task, in order.

        ::

            stuck = [entry for entry in await ledger.list_outbox(task.id) if entry.dead]
        """
        ...


class PushCalls(LedgerCalls, PushLedger):
    """Implements ``PushLedger``: checks the arguments, then calls the engine's storage."""

    async def upsert_push_config(
        self,
        task_id: str,
        config: PushConfig,
        *,
        owner: Owner = None,
        max_configs: int | None = None,
    ) -> None:
        """Store a push config under its id. Raises ``NotFoundError`` if there is no such task."""
        stored, key = StoredPush.of(config), task_key(task_id, owner)
        most = check_optional_count("max_configs", max_configs)
        if not await self._storage.upsert_push_config(key, stored, most) and most is not None:
            raise too_many_configs(most)

    async def get_push_config(
        self, task_id: str, config_id: str, *, owner: Owner = None
    ) -> PushConfig | None:
        """Return one push config of a task, or ``None``."""
        key = task_key(task_id, owner)
        found = await self._storage.push_configs(key, check_id("config_id", config_id))
        return found[0].load() if found else None

    async def list_push_configs(self, task_id: str, *, owner: Owner = None) -> list[PushConfig]:
        """Return the push configs of a task, ordered by id."""
        found = await self._storage.push_configs(task_key(task_id, owner), None)
        return [config.load() for config in found]

    async def delete_push_config(
        self, task_id: str, config_id: str, *, owner: Owner = None
    ) -> bool:
        """Delete a push config and its undelivered entries. Returns whether it was there."""
        key = task_key(task_id, owner)
        return await self._storage.delete_push_config(key, check_id("config_id", config_id))

    async def claim_outbox(
        self,
        *,
        limit: int = 100,
        lease_seconds: float = LEASE_SECONDS,
        per_owner: int | None = None,
        busy: Mapping[str, int] | None = None,
    ) -> list[OutboxEntry]:
        """Claim entries that are due, the oldest first, for ``lease_seconds``."""
        claim = OutboxClaim(
            check_count("limit", limit),
            check_seconds("lease_seconds", lease_seconds),
            check_optional_count("per_owner", per_owner),
            check_busy(busy),
        )
        return [entry.load() for entry in await self._storage.claim_outbox(claim)]

    async def mark_delivered(self, entry: OutboxEntry) -> bool:
        """Delete a delivered entry. Returns whether it was still there."""
        key = _entry_key(entry)
        return key is not None and await self._storage.mark_delivered(key)

    async def mark_failed(
        self, entry: OutboxEntry, error: str, *, max_attempts: int = DELIVERY_ATTEMPTS
    ) -> bool:
        """Schedule the next attempt of an entry, or give it up after ``max_attempts``."""
        text, most = check_text("error", error), check_count("max_attempts", max_attempts)
        key = _entry_key(entry)
        if key is None:
            return False
        failure = FailedDelivery(entry.attempts, text, most, delivery_delay(entry.attempts))
        return await self._storage.mark_failed(key, failure)

    async def list_outbox(self, task_id: str, *, owner: Owner = None) -> list[OutboxEntry]:
        """Return the undelivered and the given up entries of a task, in order."""
        found = await self._storage.outbox(task_key(task_id, owner))
        return [entry.load() for entry in found]


def _entry_key(entry: OutboxEntry) -> EntryKey | None:
    """Return the key of an entry; ``None`` if its id does not belong to its task and config."""
    event = check_entry(entry).event
    key = EntryKey(event.task_id, entry.config.id, event.seq)
    return key if key.id == entry.id else None


def delivery_delay(attempts: int) -> timedelta:
    """Return the delay after a number of failed attempts: doubles from a second up to an hour.

    >>> delivery_delay(1).total_seconds(), delivery_delay(4).total_seconds()
    (1.0, 8.0)
    """
    return timedelta(seconds=min(2.0 ** min(attempts - 1, 12), 3600.0))


def too_many_configs(most: int) -> InvalidInputError:
    """Return the error for more than ``most`` push configs of a task.

    >>> str(too_many_configs(20))
    'push: the task has 20 push configs, which is the limit: delete one first'
    """
    return InvalidInputError(
        "push", f"the task has {most} push configs, which is the limit: delete one first"
    )


def check_busy(busy: object) -> dict[str, int]:
    """Check how many deliveries each owner has in progress; for ``None`` return ``{}``.

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
