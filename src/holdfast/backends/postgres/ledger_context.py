"""The contexts of the ledger on Postgres."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.backends.postgres.ledger_rows import to_messages
from holdfast.backends.postgres.ledger_view import LedgerView
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_optional_id,
)
from holdfast.kernel.storage.ledger_context import ContextLedger
from holdfast.kernel.storage.ledger_input import check_owner
from holdfast.kernel.storage.ledger_records import (
    ContextPage,
    ContextRecord,
    decode_cursor,
    encode_cursor,
)

_SQL = load("ledger_context")
_MOST = (1 << 63) - 1


class PostgresContexts(LedgerView, ContextLedger):
    """``ContextLedger`` on Postgres."""

    async def list_contexts(
        self, *, owner: str | None = "", limit: int = 50, cursor: str | None = None
    ) -> ContextPage:
        """Contexts, the newest first (those of one moment by id, descending), without messages."""
        whose = check_owner(owner)
        check_count("limit", limit)
        when, names = None, ["", ""]
        if cursor is not None:
            when, names = decode_cursor(cursor, names=2)
        rows = await self._engine.fetch(
            _SQL["list"],
            *(self._tenant, whose, when, *names),
            # One more than asked for tells whether there is a next page.
            min(limit + 1, _MOST) if limit else 0,
            safe=True,
        )
        page = [_to_context(row) for row in rows[:limit]]
        more = len(rows) > limit > 0
        return ContextPage(
            page,
            next_cursor=(
                encode_cursor(page[-1].created_at, page[-1].id, page[-1].owner) if more else None
            ),
        )

    async def get_context(
        self,
        context_id: str,
        *,
        owner: str = "",
        history_length: int | None = None,
        max_bytes: int | None = None,
    ) -> ContextRecord | None:
        """A context with its last ``history_length`` messages (all, unless told), or ``None``."""
        check_optional_count("history_length", history_length)
        check_optional_count("max_bytes", max_bytes)
        within = () if max_bytes is None else (max_bytes,)
        row = await self._engine.fetchrow(
            _SQL["get_within"] if within else _SQL["get"],
            *(self._tenant, *_key(context_id, owner), history_length, *within),
            safe=True,
        )
        if row is None:
            return None
        messages = to_messages(row) if row["message_ids"] else []
        truncated = bool(row.get("truncated"))
        return replace(_to_context(row), messages=messages, truncated=truncated)

    async def clear_context(self, context_id: str, *, owner: str = "") -> int:
        """Remove a context with its tasks, and return how many those were."""
        removed: int = await self._engine.fetchval(
            _SQL["clear"], self._tenant, *_key(context_id, owner), safe=False
        )
        return removed


def _key(context_id: object, owner: object) -> tuple[str, str]:
    return check_optional_id("owner", owner), check_id("context_id", context_id)


def _to_context(row: Any) -> ContextRecord:
    return ContextRecord(row["id"], row["created_at"], owner=row["owner"], tasks=row["tasks"])
