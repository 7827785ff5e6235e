"""The push configs of the ledger on Postgres, and what is on its way to them."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.backends.postgres.ledger_rows import entry_id, to_entry, to_push_config
from holdfast.backends.postgres.ledger_view import LedgerView
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
    check_text,
)
from holdfast.kernel.core.codec import encode_json
from holdfast.kernel.storage.ledger_input import check_entry, check_owner
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

_SQL = load("ledger_push")


class PostgresPush(LedgerView, PushLedger):
    """``PushLedger`` on Postgres."""

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
        check_id("task_id", task_id)
        most = check_optional_count("max_configs", max_configs)
        within = () if most is None else (most,)
        done = await self._engine.fetchval(
            _SQL["upsert_within"] if within else _SQL["upsert"],
            *(self._tenant, task_id, check_owner(owner), stored.id),
            *(encode_json(stored.url), encode_json(stored.token), stored.authentication),
            *within,
            safe=True,
        )
        if most is not None and not done:
            raise too_many_configs(most)

    async def get_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = ""
    ) -> PushConfig | None:
        """One push config of a task, or ``None``."""
        check_id("config_id", config_id)
        return next(iter(await self._configs(task_id, config_id, owner)), None)

    async def list_push_configs(self, task_id: str, *, owner: str | None = "") -> list[PushConfig]:
        """The push configs of a task, ordered by id."""
        return await self._configs(task_id, None, owner)

    async def _configs(
        self, task_id: str, config_id: str | None, owner: str | None
    ) -> list[PushConfig]:
        check_id("task_id", task_id)
        rows = await self._engine.fetch(
            _SQL["configs"], self._tenant, task_id, check_owner(owner), config_id, safe=True
        )
        return [to_push_config(row, row["id"]) for row in rows]

    async def delete_push_config(
        self, task_id: str, config_id: str, *, owner: str | None = ""
    ) -> bool:
        """Remove a push config with whatever was on its way to it; whether it was there."""
        check_id("config_id", config_id)
        check_id("task_id", task_id)
        deleted: bool = await self._engine.fetchval(
            _SQL["delete"], self._tenant, task_id, check_owner(owner), config_id, safe=False
        )
        return deleted

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
        check_seconds("lease_seconds", lease_seconds)
        counts = check_busy(busy)
        each = check_optional_count("per_owner", per_owner)
        fairly = () if each is None else (each, list(counts), list(counts.values()))
        rows = await self._engine.fetch(
            _SQL["claim_fairly"] if fairly else _SQL["claim"],
            *(self._tenant, limit, lease_seconds, *fairly),
            safe=False,
        )
        return [to_entry(row) for row in rows]

    async def mark_delivered(self, entry: OutboxEntry) -> bool:
        """Remove an entry that has arrived; whether it was still there."""
        if not _is_ours(entry):
            return False
        there: bool = await self._engine.fetchval(
            _SQL["delivered"],
            *(self._tenant, entry.event.task_id, entry.config.id, entry.event.seq),
            safe=False,
        )
        return there

    async def mark_failed(
        self, entry: OutboxEntry, error: str, *, max_attempts: int = DELIVERY_ATTEMPTS
    ) -> bool:
        """Let an entry wait for its next attempt, or give it up after ``max_attempts``."""
        text = encode_json(check_text("error", error))
        check_count("max_attempts", max_attempts)
        if not _is_ours(entry):
            return False
        there: bool = await self._engine.fetchval(
            _SQL["failed"],
            *(self._tenant, entry.event.task_id, entry.config.id, entry.event.seq),
            *(entry.attempts, text, max_attempts),
            delivery_delay(entry.attempts).total_seconds(),
            safe=False,
        )
        return there

    async def list_outbox(self, task_id: str, *, owner: str | None = "") -> list[OutboxEntry]:
        """What is still on its way for a task, and what was given up, in order."""
        check_id("task_id", task_id)
        rows = await self._engine.fetch(
            _SQL["outbox"], self._tenant, task_id, check_owner(owner), safe=True
        )
        return [to_entry(row) for row in rows]


def _is_ours(entry: OutboxEntry) -> bool:
    """Whether the entry has the name that this ledger gave it."""
    event = check_entry(entry).event
    return entry.id == entry_id(event.task_id, event.seq, entry.config.id)
