"""Adopted tasks of the in-memory ledger, which another system runs."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.inmemory.tasks.context import InMemoryContexts
from holdfast.engines.inmemory.tasks.data import ContextRow, TaskRow
from holdfast.engines.inmemory.tasks.progress import InMemoryProgress
from holdfast.spi.tasks.adopted import AdoptedStorage, Adoption, StoredReport, StoredStatus
from holdfast.spi.tasks.conflicts import not_adopted
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage
from holdfast.values.errors import (
    AlreadyExistsError,
    IllegalTransitionError,
    VersionConflictError,
)
from holdfast.values.lifecycle import TERMINAL, Actor, TaskState


class InMemoryAdopted(InMemoryProgress, InMemoryContexts, AdoptedStorage):
    """Stores adopted tasks, which another system runs, and the reports about them."""

    async def adopt(self, adoption: Adoption) -> TaskSnapshot:
        """Store a task that another system runs, and its reports."""
        data, now = self._data, self._engine.now()
        if adoption.task_id in data.tasks:
            raise AlreadyExistsError("task", adoption.task_id)
        row = TaskRow(
            id=adoption.task_id,
            session_id=adoption.session_id,
            owner=adoption.owner,
            agent=adoption.agent,
            metadata=adoption.metadata,
            max_attempts=0,
            submit_key="",
            retry_of="",
            created_at=now,
            updated_at=now,
        )
        _check_open(row.id, TaskState.SUBMITTED, adoption.reports)
        self._check_bodies(row, adoption.reports)
        data.tasks[row.id] = row
        context = data.contexts.setdefault(
            (row.owner, row.session_id), ContextRow(row.session_id, row.owner, now)
        )
        context.tasks.append(row.id)
        self._move(row, TaskState.SUBMITTED, Actor.CLIENT)
        self._report(row, adoption.reports)
        return row.snapshot()

    async def record(
        self, key: TaskKey, reports: Sequence[StoredReport], expected_version: int | None
    ) -> int:
        """Store reports if the task has the expected version. Returns the new version."""
        row = self._owned(*key)
        if not row.adopted:
            raise not_adopted(row.id)
        if expected_version not in (None, row.version):
            raise VersionConflictError(
                "task", row.id, expected=expected_version or 0, actual=row.version
            )
        _check_open(row.id, row.state, reports)
        self._check_bodies(row, reports)
        self._report(row, reports)
        return row.version

    def _check_bodies(self, row: TaskRow, reports: Sequence[StoredReport]) -> None:
        """Raise before anything is written if a message has the id of another message."""
        given: dict[str, StoredMessage] = {}
        for report in reports:
            said = report.message if isinstance(report, StoredStatus) else report
            if isinstance(said, StoredMessage):
                self._known(row, said)
                self._same(given.setdefault(said.id, said), said)

    def _report(self, row: TaskRow, reports: Sequence[StoredReport]) -> None:
        for report in reports:
            match report:
                case StoredStatus():
                    said = report.message
                    self._said(row, said)
                    row.metadata = row.metadata if report.metadata is None else report.metadata
                    status = "" if said is None else said.id
                    self._move(
                        row,
                        report.state,
                        Actor.WORKER,
                        note=report.note,
                        status=status,
                        at=report.at,
                    )
                case StoredMessage():
                    self._said(row, report)
                case StoredChunk():
                    self._write(row, report)

    def _said(self, row: TaskRow, message: StoredMessage | None) -> None:
        if message is not None and message.id not in row.messages:
            self._say(row, message, Actor.WORKER)

    async def delete_task(self, key: TaskKey) -> bool:
        """Delete a task with all its data. Returns whether it existed."""
        row = self._find(*key)
        if row is None:
            return False
        context = self._context(row)
        context.tasks.remove(row.id)
        context.working.discard(row.id)
        context.messages[:] = [one for one in context.messages if one[0] != row.id]
        if not context.tasks:
            del self._data.contexts[row.owner, row.session_id]
        self._forget(self._data.tasks.pop(row.id))
        return True


def _check_open(task_id: str, state: TaskState, reports: Sequence[StoredReport]) -> None:
    """Raise for a report after the end of a task; one of the reports may end it."""
    for report in reports:
        to = report.state if isinstance(report, StoredStatus) else state
        if state in TERMINAL:
            raise IllegalTransitionError("task", task_id, from_state=state, to_state=to)
        state = to
