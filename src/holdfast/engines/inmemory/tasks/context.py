"""The contexts of the in-memory ledger, and which messages are not in the session log yet."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from holdfast.engines.inmemory.tasks.data import ContextRow, TaskRow
from holdfast.engines.inmemory.tasks.view import LedgerView
from holdfast.spi.tasks.contexts import (
    ContextAfter,
    ContextSnapshot,
    ContextStorage,
    SaidMessage,
)
from holdfast.spi.tasks.records import ContextKey, Extent
from holdfast.spi.tasks.stored import StoredMessage, fitting, text_bytes
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.tasks.records import ContextRecord

_BUSY = (TaskState.SUBMITTED, TaskState.WORKING)


class InMemoryContexts(LedgerView, ContextStorage):
    """Reads and deletes contexts, and finds messages that are not in the session log yet."""

    async def list_contexts(
        self, owner: str | None, after: ContextAfter | None, limit: int, *, children: bool
    ) -> list[ContextRecord]:
        """Return contexts, the newest first."""
        found = [
            one
            for one in self._data.contexts.values()
            if owner in (None, one.owner) and (after is None or _newest(one) < after)
        ]
        found.sort(key=_newest, reverse=True)
        if children:
            return [_record(one) for one in found[:limit]]
        of_clients = [(one, self._of_clients(one)) for one in found]
        shown = [(one, count) for one, count in of_clients if count or not one.tasks]
        return [replace(_record(one), tasks=count) for one, count in shown[:limit]]

    def _of_clients(self, context: ContextRow) -> int:
        """Return how many tasks of a context were submitted by clients, not by other tasks."""
        return sum(not self._data.tasks[one].parent_id for one in context.tasks)

    async def get_context(self, key: ContextKey, extent: Extent) -> ContextSnapshot | None:
        """Return a context with its last messages, or ``None``."""
        context = self._data.contexts.get(key)
        if context is None:
            return None
        count = len(context.messages) if extent.history_length is None else extent.history_length
        last = [self._message(*one) for one in islice(reversed(context.messages), count)]
        fit = last[: fitting((text_bytes(one.payload) for one in last), extent.max_bytes)]
        messages = [one._replace(seq=None) for one in reversed(fit)]
        return ContextSnapshot(_record(context), messages, truncated=len(fit) < len(last))

    def _message(self, task_id: str, message_id: str) -> StoredMessage:
        return self._data.tasks[task_id].messages[message_id]

    async def clear_context(self, key: ContextKey) -> int:
        """Delete a context with its tasks. Returns how many tasks it had."""
        context = self._data.contexts.pop(key, None)
        if context is None:
            return 0
        for task_id in context.tasks:
            self._forget(self._data.tasks.pop(task_id))
        return len(context.tasks)

    def _forget(self, row: TaskRow) -> None:
        """Delete every reference to a task, and make its cleanup marks claimable."""
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
        if row.state not in TERMINAL:
            self._wake_parent(row)
        data.followers.ring(row.id)

    async def resting_messages(self, agents: Collection[AgentId], limit: int) -> list[SaidMessage]:
        """Return the messages of idle tasks that are not yet copied to the session log."""
        resting = (
            row
            for row in map(self._data.tasks.__getitem__, self._data.uncopied)
            if row.agent in agents and row.state not in _BUSY
        )
        return [
            _said(row, message)
            for row in islice(resting, limit)
            for message in row.messages.values()
        ]

    async def context_messages(
        self, keys: Sequence[ContextKey], agents: Collection[AgentId], last: int
    ) -> list[SaidMessage]:
        """Return the last messages of contexts that are not yet copied to the session log."""
        contexts = map(self._data.contexts.get, keys if last else ())
        return [
            _said(row, row.messages[message_id])
            for context in contexts
            if context is not None
            for task_id, message_id in context.messages[-last:]
            if task_id in self._data.uncopied and (row := self._data.tasks[task_id]).agent in agents
        ]

    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark unchanged, idle tasks as copied. Returns the ids of the tasks that exist."""
        there = {task_id: version for task_id, version in tasks if task_id in self._data.tasks}
        for task_id, version in there.items():
            row = self._data.tasks[task_id]
            if row.state not in _BUSY and row.version == version:
                self._data.uncopied.pop(task_id, None)
        return set(there)


def _newest(context: ContextRow) -> tuple[datetime, str, str]:
    return context.created_at, context.id, context.owner


def _record(context: ContextRow) -> ContextRecord:
    tasks = len(context.tasks)
    return ContextRecord(context.id, context.created_at, owner=context.owner, tasks=tasks)


def _said(row: TaskRow, message: StoredMessage) -> SaidMessage:
    return SaidMessage(row.id, row.agent, row.owner, row.session_id, row.version, message)
