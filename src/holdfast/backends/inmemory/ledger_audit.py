"""The timelines of the in-memory ledger, and the feedback beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from holdfast.backends.inmemory.ledger_data import event_bytes
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import check_count, check_optional_count
from holdfast.kernel.core.errors import ConflictError
from holdfast.kernel.core.lifecycle import TERMINAL
from holdfast.kernel.storage.ledger_audit import AuditLedger
from holdfast.kernel.storage.ledger_events import TaskEvent
from holdfast.kernel.storage.ledger_input import check_feedback
from holdfast.kernel.storage.ledger_records import Feedback, TaskRecord
from holdfast.kernel.storage.ledger_replay import replay
from holdfast.kernel.storage.ledger_stored import fitting


class InMemoryAudit(LedgerView, AuditLedger):
    """``AuditLedger`` in the process."""

    async def events(
        self,
        task_id: str,
        *,
        after: int = 0,
        limit: int | None = None,
        owner: str | None = "",
        max_bytes: int | None = None,
    ) -> list[TaskEvent]:
        """The events of a task above a cursor, ascending; ``[]`` for an unknown task."""
        check_count("after", after)
        check_optional_count("limit", limit)
        check_optional_count("max_bytes", max_bytes)
        row = self._find(task_id, owner)
        if row is None:
            return []
        end = len(row.events) if limit is None else min(after + limit, len(row.events))
        seqs = range(after + 1, end + 1)
        count = fitting((event_bytes(row.events[seq - 1]) for seq in seqs), max_bytes)
        return [row.load_event(seq) for seq in seqs[:count]]

    async def follow(
        self, task_id: str, *, after: int = 0, owner: str | None = ""
    ) -> AsyncIterator[TaskEvent]:
        """The events of a task above a cursor, then each as it happens, until it has ended."""
        seen = check_count("after", after)
        row = self._owned(task_id, owner)
        while self._data.tasks.get(task_id) is row:
            while seen < len(row.events):
                seen += 1
                yield row.load_event(seen)
            if row.state in TERMINAL:
                return
            await self._news(task_id)

    async def _news(self, task_id: str) -> None:
        """Wait until the timeline of a task has grown, or the task is gone."""
        waiter = asyncio.Event()
        waiters = self._data.waiters.setdefault(task_id, set())
        waiters.add(waiter)
        try:
            await waiter.wait()
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._data.waiters.pop(task_id, None)

    async def replay(
        self, task_id: str, at_seq: int, *, owner: str | None = ""
    ) -> TaskRecord | None:
        """The task as it was after the event ``at_seq``, with messages and artifacts."""
        check_count("at_seq", at_seq)
        row = self._find(task_id, owner)
        if row is None:
            return None
        count = min(at_seq, len(row.events))
        return replay(row.load(), (row.load_event(seq) for seq in range(1, count + 1)))

    async def append_feedback(
        self,
        task_id: str,
        text: str,
        *,
        rating: int | None = None,
        metadata: dict[str, Any] | None = None,
        feedback_id: str = "",
        owner: str | None = "",
    ) -> Feedback:
        """Store what somebody thinks of a task, in whatever state that is."""
        feedback = check_feedback(
            text,
            rating=rating,
            metadata=metadata,
            feedback_id=feedback_id,
            now=self._engine.now(),
        )
        row = self._owned(task_id, owner)
        known = row.feedback.setdefault(feedback.id, feedback)
        if known.digest() != feedback.digest():
            raise ConflictError(
                "feedback", feedback.id, f"feedback {feedback.id!r} is there with another body"
            )
        return known.load(row.id)

    async def list_feedback(self, task_id: str, *, owner: str | None = "") -> list[Feedback]:
        """The feedback on a task, in the order it was given."""
        row = self._find(task_id, owner)
        return [] if row is None else [one.load(row.id) for one in row.feedback.values()]
