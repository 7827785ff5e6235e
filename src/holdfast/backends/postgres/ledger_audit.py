"""The timelines of the ledger on Postgres, and the feedback beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.backends.postgres.ledger_rows import to_event, to_feedback, to_origin
from holdfast.backends.postgres.ledger_view import LedgerView
from holdfast.backends.postgres.listener import Listener
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_count, check_id, check_optional_count
from holdfast.kernel.core.codec import encode_json
from holdfast.kernel.core.errors import NotFoundError
from holdfast.kernel.core.lifecycle import TERMINAL
from holdfast.kernel.storage.ledger_audit import AuditLedger
from holdfast.kernel.storage.ledger_events import TaskEvent
from holdfast.kernel.storage.ledger_input import check_feedback, check_owner
from holdfast.kernel.storage.ledger_records import Feedback, TaskRecord
from holdfast.kernel.storage.ledger_replay import replay

_SQL = load("ledger_audit")
_BATCH, _BATCH_BYTES = 100, 1 << 20
"""How much a follower reads at a time: so many events, or so many bytes of them."""


class PostgresAudit(LedgerView, AuditLedger):
    """``AuditLedger`` on Postgres."""

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
        check_id("task_id", task_id)
        within = () if max_bytes is None else (max_bytes,)
        rows = await self._engine.fetch(
            _SQL["events_within"] if within else _SQL["events"],
            *(self._tenant, task_id, check_owner(owner), after, limit, *within),
            safe=True,
        )
        return [to_event(row) for row in rows]

    async def follow(
        self, task_id: str, *, after: int = 0, owner: str | None = ""
    ) -> AsyncIterator[TaskEvent]:
        """The events of a task above a cursor, then each as it happens, until it has ended."""
        seen = check_count("after", after)
        check_id("task_id", task_id)
        whose = check_owner(owner)
        rows = await self._look(task_id, whose, seen)
        if not rows:
            raise NotFoundError("task", task_id)
        with self._engine.part(Listener).bell(f"{self._tenant}\ntask\n{task_id}") as bell:
            while rows:
                news = [row for row in rows if row["seq"] is not None]
                for row in news:
                    yield to_event(row)
                    seen = row["seq"]
                # The state is that of the version, which may be ahead of the events read with it.
                if seen >= rows[0]["out_version"]:
                    if rows[0]["out_state"] in TERMINAL:
                        return
                    await bell.wait(found=bool(news))
                rows = await self._look(task_id, whose, seen)

    async def _look(self, task_id: str, owner: str | None, after: int) -> Sequence[Any]:
        return await self._engine.fetch(
            _SQL["follow"], self._tenant, task_id, owner, after, _BATCH, _BATCH_BYTES, safe=True
        )

    async def replay(
        self, task_id: str, at_seq: int, *, owner: str | None = ""
    ) -> TaskRecord | None:
        """The task as it was after the event ``at_seq``, with messages and artifacts."""
        check_count("at_seq", at_seq)
        check_id("task_id", task_id)
        rows = await self._engine.fetch(
            _SQL["replay"], self._tenant, task_id, check_owner(owner), at_seq, safe=True
        )
        return replay(to_origin(rows[0]), map(to_event, rows)) if rows else None

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
            now=datetime.now(UTC),
        )
        check_id("task_id", task_id)
        row = await self._engine.fetchrow(
            _SQL["append_feedback"],
            *(self._tenant, task_id, check_owner(owner), feedback.id),
            *(encode_json(feedback.text), feedback.rating, feedback.metadata, feedback.digest()),
            safe=True,
        )
        return to_feedback(row)

    async def list_feedback(self, task_id: str, *, owner: str | None = "") -> list[Feedback]:
        """The feedback on a task, in the order it was given."""
        check_id("task_id", task_id)
        rows = await self._engine.fetch(
            _SQL["list_feedback"], self._tenant, task_id, check_owner(owner), safe=True
        )
        return [to_feedback(row) for row in rows]
