"""The contexts of the ledger on Postgres, and which messages are not in the session log yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_agent, to_messages
from holdfast.engines.postgres.tasks.view import LedgerView
from holdfast.spi.tasks.contexts import (
    ContextAfter,
    ContextSnapshot,
    ContextStorage,
    SaidMessage,
)
from holdfast.spi.tasks.records import ContextKey, Extent
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.identity import AgentId
from holdfast.values.tasks.records import ContextRecord

_SQL, _TRANSCRIPT = load("ledger_context"), load("ledger_transcript")
_MOST_BYTES = 16 << 20
"""How many bytes of messages are read at a time."""


class PostgresContexts(LedgerView, ContextStorage):
    """Reads and deletes contexts, and finds messages that are not in the session log yet."""

    async def list_contexts(
        self, owner: str | None, after: ContextAfter | None, limit: int, *, children: bool
    ) -> list[ContextRecord]:
        """Return contexts, the newest first."""
        rows = await self._engine.fetch(
            *(_SQL["list"], self._tenant, owner, *(after or (None, "", "")), limit, children),
            safe=True,
        )
        return [_to_context(row) for row in rows]

    async def get_context(self, key: ContextKey, extent: Extent) -> ContextSnapshot | None:
        """Return a context with its last messages, or ``None``."""
        within = () if extent.max_bytes is None else (extent.max_bytes,)
        row = await self._engine.fetchrow(
            _SQL["get_within"] if within else _SQL["get"],
            *(self._tenant, *key, extent.history_length, *within),
            safe=True,
        )
        if row is None:
            return None
        messages = to_messages(row) if row["message_ids"] else []
        return ContextSnapshot(_to_context(row), messages, bool(row.get("truncated")))

    async def clear_context(self, key: ContextKey) -> int:
        """Delete a context with its tasks. Returns how many tasks it had."""
        removed: int = await self._engine.fetchval(_SQL["clear"], self._tenant, *key, safe=False)
        return removed

    async def resting_messages(self, agents: Collection[AgentId], limit: int) -> list[SaidMessage]:
        """Return the messages of idle tasks that are not yet copied to the session log."""
        names = [str(agent) for agent in agents]
        rows = await self._engine.fetch(
            _TRANSCRIPT["resting"], self._tenant, names, limit, _MOST_BYTES, safe=True
        )
        return [_to_said(row) for row in rows]

    async def context_messages(
        self, keys: Sequence[ContextKey], agents: Collection[AgentId], last: int
    ) -> list[SaidMessage]:
        """Return the last messages of contexts that are not yet copied to the session log."""
        names = [str(agent) for agent in agents]
        owners, ids = [key.owner for key in keys], [key.session_id for key in keys]
        # They share the bytes. A context that needs more than its share is read again, alone.
        most = _MOST_BYTES // max(len(keys), 1)
        rows = await self._engine.fetch(
            _TRANSCRIPT["of_contexts"], self._tenant, owners, ids, names, last, most, safe=True
        )
        more = {_key(row) for row in rows if row["cut"]} if len(keys) > 1 else set()
        wanted = (row for row in rows if row["wanted"] and _key(row) not in more)
        found = [_to_said(row[:-2]) for row in wanted]
        for key in more:
            found += await self.context_messages([key], agents, last)
        return found

    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark unchanged, idle tasks as copied. Returns the ids of the tasks that exist."""
        ids, versions = [one for one, _ in tasks], [one for _, one in tasks]
        rows = await self._engine.fetch(_TRANSCRIPT["mark"], self._tenant, ids, versions, safe=True)
        return {row[0] for row in rows}


def _key(row: Any) -> ContextKey:
    return ContextKey(row["owner"], row["context_id"])


def _to_context(row: Any) -> ContextRecord:
    return ContextRecord(row["id"], row["created_at"], owner=row["owner"], tasks=row["tasks"])


def _to_said(row: Any) -> SaidMessage:
    task_id, agent, owner, context_id, version, message_id, at, seq, body = row
    message = StoredMessage(message_id, at, body, seq)
    return SaidMessage(task_id, to_agent(agent), owner, context_id, version, message)
