"""How clients read and steer the tasks of the in-memory ledger."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from holdfast.backends.inmemory.ledger_data import TaskRow
from holdfast.backends.inmemory.ledger_submit import SubmitView
from holdfast.backends.inmemory.ledger_work import Doorbell
from holdfast.kernel.core.checks import check_count, check_optional_count, check_text
from holdfast.kernel.core.codec import encode_json
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.errors import IllegalTransitionError
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.lifecycle import TERMINAL, WAITING, Actor, TaskState
from holdfast.kernel.storage.ledger_client import ClientLedger
from holdfast.kernel.storage.ledger_events import TaskRequest
from holdfast.kernel.storage.ledger_input import TaskFilter, asks_nothing
from holdfast.kernel.storage.ledger_records import (
    TaskPage,
    TaskRecord,
    decode_cursor,
    encode_cursor,
)
from holdfast.kernel.storage.ledger_stored import StoredMessage, fitting, text_bytes


class InMemoryClients(SubmitView, ClientLedger):
    """``ClientLedger`` in the process."""

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
        row = self._find(task_id, owner)
        if row is None:
            return None
        return row.load(history_length=history_length, artifacts=artifacts, max_bytes=max_bytes)

    async def message_bytes(self, task_id: str, *, owner: str | None = "") -> int:
        """How many bytes the messages of a task take as JSON text; 0 for an unknown task."""
        row = self._find(task_id, owner)
        said = [] if row is None else row.messages.values()
        return sum(text_bytes(one.payload) for _, one in said)

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
        found = [row for row in self._data.tasks.values() if _fits(row, wanted)]
        found.sort(key=_newest, reverse=True)
        total = len(found) if count else None
        if cursor is not None:
            when, [task_id] = decode_cursor(cursor, names=1)
            found = [row for row in found if _newest(row) < (when, task_id)]
        page = found[:limit]
        if max_bytes is not None:
            sizes = (
                row.page_bytes(history_length=history_length, artifacts=artifacts) for row in page
            )
            page = page[: fitting(sizes, max_bytes)]
        more = len(found) > len(page) > 0
        return TaskPage(
            [
                row.load(history_length=history_length, artifacts=artifacts, max_bytes=max_bytes)
                for row in page
            ],
            next_cursor=encode_cursor(*_newest(page[-1])) if more else None,
            total=total,
        )

    async def respond(
        self, task_id: str, message: ChatMessage, *, owner: str | None = ""
    ) -> TaskRecord:
        """Answer the question of a waiting task, which goes back to the queue."""
        answer = StoredMessage.of(message)
        row = self._owned(task_id, owner)
        if self._known(row, answer):
            return row.load()
        if row.state not in WAITING:
            raise asks_nothing(row.id, row.state)
        self._say(row, answer, Actor.CLIENT)
        if row.ask is not None:
            result = encode_json({"message_id": answer.id})
            self._keep(row, row.ask, result, digest="", by=Actor.CLIENT)
        row.attempts, row.ask = 0, None
        paused = row.pause_requested
        self._move(row, TaskState.PAUSED if paused else TaskState.SUBMITTED, Actor.CLIENT)
        return row.load()

    async def cancel(self, task_id: str, *, owner: str | None = "", note: str = "") -> TaskRecord:
        """Stop a task: at once when nobody works on it, else by a request to its worker."""
        check_text("note", note)
        row = self._owned(task_id, owner)
        if row.state is TaskState.WORKING:
            if not row.cancel_requested:
                row.cancel_requested = True
                self._request(row, "cancel", note)
        elif row.state not in TERMINAL:
            self._move(row, TaskState.CANCELED, Actor.CLIENT, note=note)
        return row.load()

    async def pause(self, task_id: str, *, owner: str | None = "", note: str = "") -> TaskRecord:
        """Hold a task: at once when it is queued, else as soon as it would go back there."""
        check_text("note", note)
        row = self._owned(task_id, owner)
        _refuse_ended(row, TaskState.PAUSED)
        if row.state is TaskState.SUBMITTED:
            self._move(row, TaskState.PAUSED, Actor.CLIENT, note=note, run_after=row.run_after)
        elif row.state is not TaskState.PAUSED and not row.pause_requested:
            row.pause_requested = True
            self._request(row, "pause", note)
        return row.load()

    async def resume(self, task_id: str, *, owner: str | None = "", note: str = "") -> TaskRecord:
        """Let a paused task go on, or withdraw a pause that was only requested."""
        check_text("note", note)
        row = self._owned(task_id, owner)
        _refuse_ended(row, TaskState.SUBMITTED)
        if row.state is TaskState.PAUSED:
            self._move(row, TaskState.SUBMITTED, Actor.CLIENT, note=note, run_after=row.run_after)
        elif row.pause_requested:
            row.pause_requested = False
            self._request(row, "resume", note)
        return row.load()

    def _request(self, row: TaskRow, what: Literal["cancel", "pause", "resume"], note: str) -> None:
        self._log(row, Actor.CLIENT, TaskRequest(what, note), self._engine.now())
        if row.state is TaskState.WORKING:
            self._engine.table("", Doorbell).ring(row.worker)


def _newest(row: TaskRow) -> tuple[datetime, str]:
    return row.updated_at, row.id


def _refuse_ended(row: TaskRow, to: TaskState) -> None:
    if row.state in TERMINAL:
        raise IllegalTransitionError("task", row.id, from_state=row.state, to_state=to)


def _fits(row: TaskRow, wanted: TaskFilter) -> bool:
    return (
        wanted.owner in (None, row.owner)
        and wanted.context_id in (None, row.context_id)
        and wanted.agent in (None, row.agent)
        and (wanted.updated_after is None or row.updated_at >= wanted.updated_after)
        and (wanted.states is None or row.state in wanted.states)
    )
