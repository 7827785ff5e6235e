"""What happened to a task, as it happens and afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.kernel.storage.ledger_audit import AuditLedger
from holdfast.kernel.storage.ledger_events import TaskEvent
from holdfast.kernel.storage.ledger_records import Feedback, TaskRecord
from holdfast.kernel.storage.ledger_replay import replay
from holdfast.kernel.storage.ledger_stored import StoredFeedback
from holdfast.spi.tasks_records import TaskSnapshot
from holdfast.values.checks import (
    check_count,
    check_optional_count,
    check_optional_id,
    check_text,
)
from holdfast.values.codec import encode_json, encode_object
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TERMINAL


class AuditCalls(LedgerCalls, AuditLedger):
    """``AuditLedger`` on any engine."""

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
        found = await self._storage.events(
            task_key(task_id, owner),
            check_count("after", after),
            check_optional_count("limit", limit),
            check_optional_count("max_bytes", max_bytes),
        )
        return [event.load(task_id) for event in found]

    async def follow(
        self, task_id: str, *, after: int = 0, owner: str | None = ""
    ) -> AsyncIterator[TaskEvent]:
        """The events of a task above a cursor, then each as it happens, until it has ended."""
        seen, key = check_count("after", after), task_key(task_id, owner)
        found = await self._storage.next_events(key, seen)
        if found is None:
            raise NotFoundError("task", task_id)
        with self._storage.following(task_id) as followed:
            while found is not None:
                for event in found.events:
                    yield event.load(task_id)
                    seen = event.seq
                # The state is that of the version, which may be ahead of the events read with it.
                if seen >= found.version:
                    if found.state in TERMINAL:
                        return
                    await followed.wait(found=bool(found.events))
                found = await self._storage.next_events(key, seen)

    async def replay(
        self, task_id: str, at_seq: int, *, owner: str | None = ""
    ) -> TaskRecord | None:
        """The task as it was after the event ``at_seq``, with messages and artifacts."""
        until = check_count("at_seq", at_seq)
        found = await self._storage.first_events(task_key(task_id, owner), until)
        if found is None:
            return None
        task, events = found
        return replay(TaskSnapshot(task).load(), (event.load(task_id) for event in events))

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
        feedback = StoredFeedback(
            check_optional_id("feedback_id", feedback_id) or new_id(),
            check_text("text", text),
            _check_rating(rating),
            encode_object({} if metadata is None else metadata, field="metadata"),
            datetime.now(UTC),
        )
        key = task_key(task_id, owner)
        return (await self._storage.append_feedback(key, feedback)).load(task_id)

    async def list_feedback(self, task_id: str, *, owner: str | None = "") -> list[Feedback]:
        """The feedback on a task, in the order it was given."""
        found = await self._storage.list_feedback(task_key(task_id, owner))
        return [feedback.load(task_id) for feedback in found]


def _check_rating(rating: object) -> int | None:
    if rating is None:
        return None
    if isinstance(rating, bool) or not isinstance(rating, int):
        raise InvalidInputError("rating", f"must be a whole number, not {type(rating).__name__}")
    encode_json(rating, field="rating")
    return rating
