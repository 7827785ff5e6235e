"""The push configs of the in-memory ledger, and what is on its way to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

from holdfast.backends.inmemory.ledger_data import Delivery, TaskRow
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
    check_text,
)
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


class InMemoryPush(LedgerView, PushLedger):
    """``PushLedger`` in the process."""

    async def upsert_push_config(
        self,
        task_id: str,
        config: PushConfig,
        *,
        owner: str | None = "",
        max_configs: int | None = None,
    ) -> None:
        """Store a push config under its id; ``NotFoundError`` if there is no such task."""
        stored = StoredPush.of(config)
        most = check_optional_count("max_configs", max_configs)
        push = self._owned(task_id, owner).push
        if most is not None and len(push.keys() - {stored.id}) >= most:
            raise too_many_configs(most)
        push[stored.id] = stored

    async def get_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = ""
    ) -> PushConfig | None:
        """One push config of a task, or ``None``."""
        check_id("config_id", config_id)
        row = self._find(task_id, owner)
        stored = row.push.get(config_id) if row is not None else None
        return stored.load() if stored is not None else None

    async def list_push_configs(self, task_id: str, *, owner: str | None = "") -> list[PushConfig]:
        """The push configs of a task, ordered by id."""
        row = self._find(task_id, owner)
        return [] if row is None else [row.push[one].load() for one in sorted(row.push)]

    async def delete_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = ""
    ) -> bool:
        """Remove a push config with whatever was on its way to it; whether it was there."""
        check_id("config_id", config_id)
        row = self._find(task_id, owner)
        if row is None or config_id not in row.push:
            return False
        del row.push[config_id]
        self._data.lanes.pop((row.id, config_id), None)
        return True

    async def claim_outbox(
        self,
        *,
        limit: int = 100,
        lease_seconds: float = LEASE_SECONDS,
        per_owner: int | None = None,
        busy: Mapping[str, int] | None = None,
    ) -> list[OutboxEntry]:
        """Take entries that are due, the oldest first; nobody else gets them for the lease."""
        check_count("limit", limit)
        counts = Counter(check_busy(busy))
        check_optional_count("per_owner", per_owner)
        lease = timedelta(seconds=check_seconds("lease_seconds", lease_seconds))
        now = self._engine.now()
        due = sorted(
            (first.due_at, first.id, task_id, config_id)
            for (task_id, config_id), lane in self._data.lanes.items()
            if (first := _head(lane)) is not None and first.due_at <= now
        )
        if per_owner is not None:
            turns = []
            for one in due:
                owner = self._data.tasks[one[2]].owner
                counts[owner] += 1
                if counts[owner] <= per_owner:
                    turns.append((counts[owner], one))
            due = [one for _, one in sorted(turns)]
        claimed = []
        for _, entry_id, task_id, config_id in due[:limit]:
            delivery = self._data.lanes[task_id, config_id][entry_id]
            delivery.attempts += 1
            delivery.due_at = now + lease
            claimed.append(_entry(self._data.tasks[task_id], config_id, delivery))
        return claimed

    async def mark_delivered(self, entry: OutboxEntry) -> bool:
        """Remove an entry that has arrived; whether it was still there."""
        lane, delivery = self._delivery(entry)
        if delivery is None:
            return False
        del lane[delivery.id]
        if not lane:
            del self._data.lanes[entry.event.task_id, entry.config.id]
        return True

    async def mark_failed(
        self, entry: OutboxEntry, error: str, *, max_attempts: int = DELIVERY_ATTEMPTS
    ) -> bool:
        """Let an entry wait for its next attempt, or give it up after ``max_attempts``."""
        check_text("error", error)
        check_count("max_attempts", max_attempts)
        _, delivery = self._delivery(entry)
        if delivery is None or delivery.dead or delivery.attempts != entry.attempts:
            return False
        delivery.last_error = error
        delivery.dead = delivery.attempts >= max_attempts
        delivery.due_at = self._engine.now() + delivery_delay(delivery.attempts)
        return True

    async def list_outbox(self, task_id: str, *, owner: str | None = "") -> list[OutboxEntry]:
        """What is still on its way for a task, and what was given up, in order."""
        row = self._find(task_id, owner)
        if row is None:
            return []
        entries = [
            _entry(row, config_id, delivery)
            for config_id in sorted(row.push)
            for delivery in self._data.lanes.get((row.id, config_id), {}).values()
        ]
        return sorted(entries, key=lambda entry: entry.event.seq)

    def _delivery(self, entry: OutboxEntry) -> tuple[dict[str, Delivery], Delivery | None]:
        check_entry(entry)
        lane = self._data.lanes.get((entry.event.task_id, entry.config.id), {})
        return lane, lane.get(entry.id)


def _head(lane: dict[str, Delivery]) -> Delivery | None:
    """The entry of a push config that is next: later ones wait for it."""
    return next((one for one in lane.values() if not one.dead), None)


def _entry(row: TaskRow, config_id: str, delivery: Delivery) -> OutboxEntry:
    return OutboxEntry(
        delivery.id,
        row.push[config_id].load(),
        row.load_event(delivery.seq),
        delivery.due_at,
        attempts=delivery.attempts,
        last_error=delivery.last_error,
        dead=delivery.dead,
        owner=row.owner,
    )
