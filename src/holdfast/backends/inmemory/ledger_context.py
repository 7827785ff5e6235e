"""The contexts of the in-memory ledger."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from datetime import datetime

from holdfast.backends.inmemory.ledger_data import ContextRow, TaskRow
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_optional_id,
)
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.lifecycle import TaskState
from holdfast.kernel.storage.ledger_context import ContextLedger
from holdfast.kernel.storage.ledger_input import check_owner
from holdfast.kernel.storage.ledger_records import (
    ContextPage,
    ContextRecord,
    decode_cursor,
    encode_cursor,
)
from holdfast.kernel.storage.ledger_stored import StoredMessage, fitting, text_bytes


class InMemoryContexts(LedgerView, ContextLedger):
    """``ContextLedger`` in the process."""

    async def list_contexts(
        self, *, owner: str | None = "", limit: int = 50, cursor: str | None = None
    ) -> ContextPage:
        """Contexts, the newest first (those of one moment by id, descending), without messages."""
        whose = check_owner(owner)
        check_count("limit", limit)
        found = [one for one in self._data.contexts.values() if whose in (None, one.owner)]
        found.sort(key=_newest, reverse=True)
        if cursor is not None:
            when, [context_id, of] = decode_cursor(cursor, names=2)
            found = [one for one in found if _newest(one) < (when, context_id, of)]
        page = found[:limit]
        more = len(found) > limit > 0
        return ContextPage(
            [_record(one, []) for one in page],
            next_cursor=encode_cursor(*_newest(page[-1])) if more else None,
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
        context = self._data.contexts.get(_key(context_id, owner))
        if context is None:
            return None
        start = 0
        if history_length is not None:
            start = max(len(context.messages) - history_length, 0)
        last = [self._message(*one) for one in reversed(context.messages[start:])]
        fit = last[: fitting((text_bytes(one.payload) for one in last), max_bytes)]
        messages = [one.load(None) for one in reversed(fit)]
        return replace(_record(context, messages), truncated=len(fit) < len(last))

    def _message(self, task_id: str, message_id: str) -> StoredMessage:
        return self._data.tasks[task_id].messages[message_id][1]

    async def clear_context(self, context_id: str, *, owner: str = "") -> int:
        """Remove a context with its tasks, and return how many those were."""
        context = self._data.contexts.pop(_key(context_id, owner), None)
        if context is None:
            return 0
        for task_id in context.tasks:
            self._forget(self._data.tasks.pop(task_id))
        return len(context.tasks)

    def _forget(self, row: TaskRow) -> None:
        """Remove all that points to a task."""
        data = self._data
        if row.submit_key:
            del data.keys[row.owner, row.submit_key]
        if row.state is TaskState.SUBMITTED and row.due_at is not None:
            del data.queue[bisect_left(data.queue, (row.due_at, row.id))]
        data.working.pop(row.id, None)
        data.uncopied.pop(row.id, None)
        for config in row.push:
            data.lanes.pop((row.id, config), None)
        self._clean_up(row.id, files=True)
        self._wake(row.id)


def _key(context_id: object, owner: object) -> tuple[str, str]:
    return check_optional_id("owner", owner), check_id("context_id", context_id)


def _newest(context: ContextRow) -> tuple[datetime, str, str]:
    return context.created_at, context.id, context.owner


def _record(context: ContextRow, messages: list[ChatMessage]) -> ContextRecord:
    return ContextRecord(
        context.id,
        context.created_at,
        owner=context.owner,
        tasks=len(context.tasks),
        messages=messages,
    )
