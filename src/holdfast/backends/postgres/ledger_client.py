"""How clients read and steer the tasks of the ledger on Postgres."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import LiteralString

from holdfast.backends.postgres.ledger_rows import to_task
from holdfast.backends.postgres.ledger_submit import SubmitView
from holdfast.backends.postgres.ledger_view import message_columns
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_count, check_id, check_optional_count, check_text
from holdfast.kernel.core.codec import encode_json
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.errors import IllegalTransitionError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.lifecycle import TaskState
from holdfast.kernel.storage.ledger_client import ClientLedger
from holdfast.kernel.storage.ledger_input import TaskFilter, asks_nothing, check_owner
from holdfast.kernel.storage.ledger_records import (
    TaskPage,
    TaskRecord,
    decode_cursor,
    encode_cursor,
)
from holdfast.kernel.storage.ledger_stored import StoredMessage

_SQL = load("ledger_client")
_MOST = (1 << 63) - 1


class PostgresClients(SubmitView, ClientLedger):
    """``ClientLedger`` on Postgres."""

    async def get(
        self,
        task_id: str,
        *,
        owner: str | None = "",
        history_length: int | None = None,
        artifacts: bool = True,
        max_bytes: int | None = None,
    ) -> TaskRecord | None:
        """A task, or ``None``; with its last ``history_length`` messages (all, unless told)."""
        check_optional_count("history_length", history_length)
        check_optional_count("max_bytes", max_bytes)
        check_id("task_id", task_id)
        within = () if max_bytes is None else (max_bytes,)
        row = await self._engine.fetchrow(
            _SQL["get_within"] if within else _SQL["get"],
            *(self._tenant, task_id, check_owner(owner), history_length, bool(artifacts), *within),
            safe=True,
        )
        return None if row is None else to_task(row)

    async def message_bytes(self, task_id: str, *, owner: str | None = "") -> int:
        """How many bytes the messages of a task take as JSON text; 0 for an unknown task."""
        check_id("task_id", task_id)
        found: int = await self._engine.fetchval(
            _SQL["message_bytes"], self._tenant, task_id, check_owner(owner), safe=True
        )
        return found

    async def list(
        self,
        *,
        owner: str | None = "",
        context_id: str | None = None,
        states: Collection[TaskState | str] | None = None,
        agent: AgentId | str | None = None,
        updated_after: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
        history_length: int | None = 0,
        artifacts: bool = False,
        count: bool = False,
        max_bytes: int | None = None,
    ) -> TaskPage:
        """A page of tasks, those whose state changed last first."""
        check_count("limit", limit)
        check_optional_count("history_length", history_length)
        check_optional_count("max_bytes", max_bytes)
        wanted = TaskFilter.of(
            owner=owner,
            context_id=context_id,
            states=states,
            agent=agent,
            updated_after=updated_after,
        )
        when, after_id = None, ""
        if cursor is not None:
            when, [after_id] = decode_cursor(cursor, names=1)
        within = () if max_bytes is None else (max_bytes,)
        rows = await self._engine.fetch(
            _SQL["list_within"] if within else _SQL["list"],
            *(self._tenant, wanted.owner, wanted.context_id),
            None if wanted.agent is None else str(wanted.agent),
            wanted.updated_after,
            None if wanted.states is None else [state.value for state in wanted.states],
            *(when, after_id),
            # One more than asked for tells whether there is a next page.
            min(limit + 1, _MOST) if limit else 0,
            *(history_length, bool(artifacts), bool(count), *within),
            safe=True,
        )
        page = [to_task(row) for row in rows[:limit] if row["id"] is not None]
        more = rows[0]["more"] if within else len(rows) > limit > 0
        return TaskPage(
            page,
            next_cursor=encode_cursor(page[-1].updated_at, page[-1].id) if more else None,
            total=rows[0]["total"],
        )

    async def respond(
        self, task_id: str, message: ChatMessage, *, owner: str | None = ""
    ) -> TaskRecord:
        """Answer the question of a waiting task, which goes back to the queue."""
        answer = StoredMessage.of(message)
        check_id("task_id", task_id)
        try:
            row = await self._engine.fetchrow(
                _SQL["respond"],
                *(self._tenant, task_id, check_owner(owner)),
                *message_columns(answer),
                encode_json({"message_id": answer.id}),
                safe=True,
            )
        except IllegalTransitionError as error:
            raise asks_nothing(task_id, error.from_state) from None
        return self._queued(row)

    async def cancel(self, task_id: str, *, owner: str | None = "", note: str = "") -> TaskRecord:
        """Stop a task: at once when nobody works on it, else by a request to its worker."""
        return await self._steer(_SQL["cancel"], task_id, owner, note, safe=True)

    async def pause(self, task_id: str, *, owner: str | None = "", note: str = "") -> TaskRecord:
        """Hold a task: at once when it is queued, else as soon as it would go back there."""
        return await self._steer(_SQL["pause"], task_id, owner, note, safe=False)

    async def resume(self, task_id: str, *, owner: str | None = "", note: str = "") -> TaskRecord:
        """Let a paused task go on, or withdraw a pause that was only requested."""
        return await self._steer(_SQL["resume"], task_id, owner, note, safe=False)

    async def _steer(
        self, sql: LiteralString, task_id: str, owner: str | None, note: str, *, safe: bool
    ) -> TaskRecord:
        text = encode_json(check_text("note", note))
        check_id("task_id", task_id)
        row = await self._engine.fetchrow(
            sql, self._tenant, task_id, check_owner(owner), text, safe=safe
        )
        return self._requested(row)
