"""The push configs of the ledger on Postgres, and their outbox."""

from __future__ import annotations

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_entry, to_push_config
from holdfast.engines.postgres.tasks.view import LedgerView
from holdfast.spi.tasks.push import FailedDelivery, OutboxClaim, PushStorage
from holdfast.spi.tasks.records import EntryKey, StoredEntry, TaskKey
from holdfast.spi.tasks.stored import StoredPush
from holdfast.values.codec import encode_json

_SQL = load("ledger_push")


class PostgresPush(LedgerView, PushStorage):
    """Stores push configs, and the outbox of events that are delivered to them."""

    async def upsert_push_config(
        self, key: TaskKey, config: StoredPush, max_configs: int | None
    ) -> bool:
        """Store a push config. Returns ``False`` if the task has too many others."""
        within = () if max_configs is None else (max_configs,)
        done = await self._engine.fetchval(
            _SQL["upsert_within"] if within else _SQL["upsert"],
            *(self._tenant, *key, config.id),
            *(encode_json(config.url), encode_json(config.token), config.authentication),
            *within,
            safe=True,
        )
        return bool(done) if within else True

    async def push_configs(self, key: TaskKey, config_id: str | None) -> list[StoredPush]:
        """Return the push configs of a task by id, or only the one with ``config_id``."""
        rows = await self._engine.fetch(_SQL["configs"], self._tenant, *key, config_id, safe=True)
        return [to_push_config(row, row["id"]) for row in rows]

    async def delete_push_config(self, key: TaskKey, config_id: str) -> bool:
        """Delete a push config with its outbox entries. Returns whether it existed."""
        deleted: bool = await self._engine.fetchval(
            _SQL["delete"], self._tenant, *key, config_id, safe=False
        )
        return deleted

    async def claim_outbox(self, claim: OutboxClaim) -> list[StoredEntry]:
        """Claim the first outbox entry of each push config whose delivery is due."""
        limit, seconds, each, busy = claim
        fairly = () if each is None else (each, list(busy), list(busy.values()))
        rows = await self._engine.fetch(
            _SQL["claim_fairly"] if fairly else _SQL["claim"],
            *(self._tenant, limit, seconds, *fairly),
            safe=False,
        )
        return [to_entry(row) for row in rows]

    async def mark_delivered(self, key: EntryKey) -> bool:
        """Delete a delivered outbox entry. Returns whether it existed."""
        there: bool = await self._engine.fetchval(_SQL["delivered"], self._tenant, *key, safe=False)
        return there

    async def mark_failed(self, key: EntryKey, failure: FailedDelivery) -> bool:
        """Schedule a retry of an outbox entry, or make it a dead letter."""
        there: bool = await self._engine.fetchval(
            _SQL["failed"],
            *(self._tenant, *key, failure.attempts, encode_json(failure.error)),
            *(failure.max_attempts, failure.delay.total_seconds()),
            safe=False,
        )
        return there

    async def outbox(self, key: TaskKey) -> list[StoredEntry]:
        """Return the outbox entries of a task, in order."""
        rows = await self._engine.fetch(_SQL["outbox"], self._tenant, *key, safe=True)
        return [to_entry(row) for row in rows]
