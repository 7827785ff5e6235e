"""Push configs, and the outbox that deliveries go through."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.kernel.storage.ledger_input import check_entry
from holdfast.kernel.storage.ledger_push import (
    DELIVERY_ATTEMPTS,
    OutboxEntry,
    PushConfig,
    PushLedger,
    check_busy,
    delivery_delay,
    too_many_configs,
)
from holdfast.kernel.storage.ledger_records import LEASE_SECONDS
from holdfast.kernel.storage.ledger_stored import StoredPush
from holdfast.spi.tasks_push import FailedDelivery, OutboxClaim
from holdfast.spi.tasks_records import EntryKey
from holdfast.values.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
    check_text,
)


class PushCalls(LedgerCalls, PushLedger):
    """``PushLedger`` on any engine."""

    async def upsert_push_config(
        self,
        task_id: str,
        config: PushConfig,
        *,
        owner: str | None = "",
        max_configs: int | None = None,
    ) -> None:
        """Store a push config under its id; ``NotFoundError`` if there is no such task."""
        stored, key = StoredPush.of(config), task_key(task_id, owner)
        most = check_optional_count("max_configs", max_configs)
        if not await self._storage.upsert_push_config(key, stored, most) and most is not None:
            raise too_many_configs(most)

    async def get_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = ""
    ) -> PushConfig | None:
        """One push config of a task, or ``None``."""
        key = task_key(task_id, owner)
        found = await self._storage.push_configs(key, check_id("config_id", config_id))
        return found[0].load() if found else None

    async def list_push_configs(self, task_id: str, *, owner: str | None = "") -> list[PushConfig]:
        """The push configs of a task, ordered by id."""
        found = await self._storage.push_configs(task_key(task_id, owner), None)
        return [config.load() for config in found]

    async def delete_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = ""
    ) -> bool:
        """Remove a push config with whatever was on its way to it; whether it was there."""
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
        """Take entries that are due, the oldest first; nobody else gets them for the lease."""
        claim = OutboxClaim(
            check_count("limit", limit),
            check_seconds("lease_seconds", lease_seconds),
            check_optional_count("per_owner", per_owner),
            check_busy(busy),
        )
        return [entry.load() for entry in await self._storage.claim_outbox(claim)]

    async def mark_delivered(self, entry: OutboxEntry) -> bool:
        """Remove an entry that has arrived; whether it was still there."""
        key = _entry_key(entry)
        return key is not None and await self._storage.mark_delivered(key)

    async def mark_failed(
        self, entry: OutboxEntry, error: str, *, max_attempts: int = DELIVERY_ATTEMPTS
    ) -> bool:
        """Let an entry wait for its next attempt, or give it up after ``max_attempts``."""
        text, most = check_text("error", error), check_count("max_attempts", max_attempts)
        key = _entry_key(entry)
        if key is None:
            return False
        failure = FailedDelivery(entry.attempts, text, most, delivery_delay(entry.attempts))
        return await self._storage.mark_failed(key, failure)

    async def list_outbox(self, task_id: str, *, owner: str | None = "") -> list[OutboxEntry]:
        """What is still on its way for a task, and what was given up, in order."""
        found = await self._storage.outbox(task_key(task_id, owner))
        return [entry.load() for entry in found]


def _entry_key(entry: OutboxEntry) -> EntryKey | None:
    """Which entry it is; ``None`` if it does not have the name that a ledger gave it."""
    event = check_entry(entry).event
    key = EntryKey(event.task_id, entry.config.id, event.seq)
    return key if key.id == entry.id else None
