"""Which messages of the in-memory ledger are not copied into the session logs yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from holdfast.backends.inmemory.ledger_data import TaskRow
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import check_count, check_id, check_optional_id
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.lifecycle import TaskState
from holdfast.kernel.storage.ledger_transcript import (
    CONTEXT_MESSAGES,
    TaskMessage,
    TranscriptLedger,
)

_BUSY = (TaskState.SUBMITTED, TaskState.WORKING)


class InMemoryTranscripts(LedgerView, TranscriptLedger):
    """``TranscriptLedger`` in the process."""

    async def resting_messages(
        self, *, agents: Collection[AgentId | str], limit: int = 100
    ) -> list[TaskMessage]:
        """All messages of tasks that are not marked and that nobody works on."""
        wanted = {AgentId.parse(one) for one in agents}
        resting = (
            row
            for row in map(self._data.tasks.__getitem__, self._data.uncopied)
            if row.agent in wanted and row.state not in _BUSY
        )
        return [
            _said(row, message)
            for row in islice(resting, check_count("limit", limit))
            for message in row.load(history_length=None).messages
        ]

    async def context_messages(
        self,
        context_id: str,
        *,
        agents: Collection[AgentId | str],
        owner: str = "",
        last: int = CONTEXT_MESSAGES,
    ) -> list[TaskMessage]:
        """Those of a context's last messages whose tasks are not marked."""
        wanted = {AgentId.parse(one) for one in agents}
        key = check_optional_id("owner", owner), check_id("context_id", context_id)
        context = self._data.contexts.get(key)
        if not check_count("last", last) or context is None:
            return []
        return [
            _said(row, row.load_message(message_id))
            for task_id, message_id in context.messages[-last:]
            if task_id in self._data.uncopied and (row := self._data.tasks[task_id]).agent in wanted
        ]

    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks; returns the ids of those that still exist."""
        there = {task_id: version for task_id, version in tasks if task_id in self._data.tasks}
        for task_id, version in there.items():
            row = self._data.tasks[task_id]
            if row.state not in _BUSY and len(row.events) == version:
                self._data.uncopied.pop(task_id, None)
        return set(there)


def _said(row: TaskRow, message: ChatMessage) -> TaskMessage:
    return TaskMessage(row.id, row.agent, row.owner, row.context_id, len(row.events), message)
