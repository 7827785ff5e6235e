"""The push configs of the in-memory ledger, and their outbox."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TypeAlias

from holdfast.engines.inmemory.tasks.data import Delivery, TaskRow
from holdfast.engines.inmemory.tasks.view import LedgerView
from holdfast.spi.tasks.push import FailedDelivery, OutboxClaim, PushStorage
from holdfast.spi.tasks.records import EntryKey, StoredEntry, TaskKey
from holdfast.spi.tasks.stored import StoredPush

_Due: TypeAlias = tuple[datetime, str, EntryKey]


class InMemoryPush(LedgerView, PushStorage):
    """Stores push configs, and the outbox of events that are delivered to them."""

    async def upsert_push_config(
        self, key: TaskKey, config: StoredPush, max_configs: int | None
    ) -> bool:
        """Store a push config. Returns ``False`` if the task has too many others."""
        push = self._owned(*key).push
        if max_configs is not None and len(push.keys() - {config.id}) >= max_configs:
            return False
        push[config.id] = config
        return True

    async def push_configs(self, key: TaskKey, config_id: str | None) -> list[StoredPush]:
        """Return the push configs of a task by id, or only the one with ``config_id``."""
        row = self._find(*key)
        push = {} if row is None else row.push
        return [push[one] for one in sorted(push) if config_id in (None, one)]

    async def delete_push_config(self, key: TaskKey, config_id: str) -> bool:
        """Delete a push config with its outbox entries. Returns whether it existed."""
        row = self._find(*key)
        if row is None or config_id not in row.push:
            return False
        del row.push[config_id]
        self._data.lanes.pop((row.id, config_id), None)
        return True

    async def claim_outbox(self, claim: OutboxClaim) -> list[StoredEntry]:
        """Claim the first outbox entry of each push config whose delivery is due."""
        later = self._engine.now() + timedelta(seconds=claim.lease_seconds)
        claimed = []
        for _, _, key in self._turns(claim)[: claim.limit]:
            delivery = self._data.lanes[key[:2]][key.seq]
            delivery.attempts += 1
            delivery.due_at = later
            claimed.append(_entry(self._data.tasks[key.task_id], key.config_id, delivery))
        return claimed

    def _turns(self, claim: OutboxClaim) -> list[_Due]:
        """Return the outbox entries that are due for delivery, in claim order."""
        due: list[_Due] = sorted(
            (first.due_at, first.number, EntryKey(*lane, first.seq))
            for lane, entries in self._data.lanes.items()
            if (first := _head(entries)) is not None and first.due_at <= self._engine.now()
        )
        if claim.per_owner is None:
            return due
        counts, turns = Counter(claim.busy), []
        for one in due:
            owner = self._data.tasks[one[2].task_id].owner
            counts[owner] += 1
            if counts[owner] <= claim.per_owner:
                turns.append((counts[owner], one))
        return [one for _, one in sorted(turns)]

    async def mark_delivered(self, key: EntryKey) -> bool:
        """Delete a delivered outbox entry. Returns whether it existed."""
        lane = self._data.lanes.get(key[:2], {})
        there = lane.pop(key.seq, None) is not None
        if there and not lane:
            del self._data.lanes[key[:2]]
        return there

    async def mark_failed(self, key: EntryKey, failure: FailedDelivery) -> bool:
        """Schedule a retry of an outbox entry, or make it a dead letter."""
        delivery = self._data.lanes.get(key[:2], {}).get(key.seq)
        if delivery is None or delivery.dead or delivery.attempts != failure.attempts:
            return False
        delivery.last_error = failure.error
        delivery.dead = delivery.attempts >= failure.max_attempts
        delivery.due_at = self._engine.now() + failure.delay
        return True

    async def outbox(self, key: TaskKey) -> list[StoredEntry]:
        """Return the outbox entries of a task, in order."""
        row = self._find(*key)
        if row is None:
            return []
        entries = [
            _entry(row, config_id, delivery)
            for config_id in sorted(row.push)
            for delivery in self._data.lanes.get((row.id, config_id), {}).values()
        ]
        return sorted(entries, key=lambda entry: entry.event.seq)


def _head(lane: dict[int, Delivery]) -> Delivery | None:
    """Return the next entry of a push config; later ones wait for it."""
    return next((one for one in lane.values() if not one.dead), None)


def _entry(row: TaskRow, config_id: str, delivery: Delivery) -> StoredEntry:
    return StoredEntry(
        row.id,
        row.owner,
        row.push[config_id],
        row.events[delivery.seq - 1],
        delivery.due_at,
        delivery.attempts,
        delivery.last_error,
        delivery.dead,
    )
