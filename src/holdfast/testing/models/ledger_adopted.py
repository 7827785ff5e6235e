"""The tasks of the naive ledger that somebody else runs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from holdfast.testing.models.ledger_tasks import DONE, NaiveTask, NaiveTasks
from holdfast.values.content import ChatMessage, text_of
from holdfast.values.errors import (
    AlreadyExistsError,
    ConflictError,
    IllegalTransitionError,
    VersionConflictError,
)
from holdfast.values.identity import AgentId
from holdfast.values.tasks.records import TaskRecord
from holdfast.values.tasks.reports import Report, StatusReport


class NaiveAdopted(NaiveTasks):
    """Whatever is reported is tried on a copy first."""

    async def adopt(
        self, task_id: str, *, agent: str, owner: str, session_id: str, reports: Sequence[Report]
    ) -> TaskRecord:
        """Keep it."""
        if any(one.id == task_id for one in self.tasks):
            raise AlreadyExistsError("task", task_id)
        now = self.shared.now
        who = AgentId.parse(agent)
        task = NaiveTask(task_id, who, owner, session_id, {}, "", None, 0, "", now, now)
        self.happen(task, "transition", "submitted", "submitted", 0, 0)
        self._report(copy.deepcopy(task), reports, kept=False)
        self.tasks.append(task)
        self._report(task, reports)
        return self.show(task)

    async def record(
        self,
        task_id: str,
        reports: Sequence[Report],
        *,
        owner: str | None = None,
        expected_version: int | None = None,
    ) -> int:
        """Its version afterwards."""
        task = self.need(task_id, owner)
        if not task.adopted:
            raise ConflictError("task", task_id)
        if expected_version not in (None, len(task.log)):
            raise VersionConflictError("task", task_id, expected=0, actual=0)
        self._report(copy.deepcopy(task), reports, kept=False)
        self._report(task, reports)
        return len(task.log)

    def _report(self, task: NaiveTask, reports: Sequence[Report], *, kept: bool = True) -> None:
        state = task.state
        for report in reports:
            to = str(report.state) if isinstance(report, StatusReport) else state
            if state in DONE:
                raise IllegalTransitionError("task", task.id, from_state=state, to_state=to)
            state = to
        said, outbox = list(self.said), list(self.outbox)
        try:
            for report in reports:
                self._apply(task, report)
        finally:
            if not kept:
                self.said[:], self.outbox[:] = said, outbox

    def _apply(self, task: NaiveTask, report: Report) -> None:
        if isinstance(report, ChatMessage):
            self.say(task, report)
        elif isinstance(report, StatusReport):
            if report.message:
                self.say(task, report.message)
            task.metadata = task.metadata if report.metadata is None else dict(report.metadata)
            self.move(task, str(report.state), report.note, status=report.message)
            task.changed = report.at or task.changed
        else:
            goes_on = report.append and any(one["id"] == report.artifact_id for one in task.chunks)
            chunk: dict[str, Any] = {"id": report.artifact_id, "text": text_of(report.parts)}
            chunk |= {"append": goes_on, "last": report.last_chunk, "step": None, "fence": 0}
            task.chunks.append(chunk)
            self.happen(task, "artifact", chunk["text"], goes_on)

    async def delete(self, task_id: str, *, owner: str | None = None) -> bool:
        """Whether it was there."""
        task = self.look(task_id, owner)
        if task is None:
            return False
        self.tasks.remove(task)
        self.wake_parent(task)
        self.said[:] = [one for one in self.said if one[0].id != task_id]
        self.outbox[:] = [one for one in self.outbox if one.task != task_id]
        for mark in self.marks:
            if mark.task == task_id:
                mark.due = self.shared.now
        return True
