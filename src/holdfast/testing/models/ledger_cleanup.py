"""The cleanup marks of the naive ledger."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta

from holdfast.testing.models.ledger_tasks import NaiveMark, NaiveTask, NaiveTasks
from holdfast.values.tasks.records import Lease


class NaiveCleanup(NaiveTasks):
    """One list of marks, looked through for everything."""

    async def add_cleanup(self, lease: Lease, kind: str, ref: str) -> None:
        """Store it once."""
        self._mark(self.held(lease), kind, ref)

    def _mark(self, task: NaiveTask, kind: str, ref: str) -> None:
        if not any((one.task, one.kind, one.ref) == (task.id, kind, ref) for one in self.marks):
            self.marks.append(NaiveMark(task.id, task.owner, task.context, kind, ref))

    async def claim_cleanup(self, *, limit: int = 100, retry_seconds: float) -> list[NaiveMark]:
        """What is due."""
        due = [one for one in self.marks if one.due and one.due <= self.shared.now]
        due = sorted(due, key=lambda one: (one.due, one.task, one.kind, one.ref))[:limit]
        for one in due:
            one.due = self.shared.now + timedelta(seconds=retry_seconds)
        return [copy.copy(one) for one in due]

    async def list_cleanup(self, task_id: str) -> list[NaiveMark]:
        """What is due of a task."""
        due = [one for one in self.marks if one.task == task_id and one.due]
        return sorted(due, key=lambda one: (one.due, one.kind, one.ref))

    async def list_context_cleanup(self, session_id: str, *, owner: str = "") -> list[NaiveMark]:
        """What is due of a context."""
        whose = (owner, session_id)
        return [one for one in self.marks if (one.owner, one.context) == whose and one.due]

    async def keep_files(self, task_id: str, refs: Sequence[str]) -> bool:
        """Keep them with the task."""
        task = self.look(task_id, None)
        for ref in refs if task else ():
            self._mark(self.need(task_id, None), "artifact", ref)
        return task is not None

    async def delete_cleanup(self, marks: Sequence[NaiveMark]) -> int:
        """How many were there."""
        names = [(one.task, one.kind, one.ref) for one in marks]
        gone = [one for one in self.marks if (one.task, one.kind, one.ref) in names]
        self.marks[:] = [one for one in self.marks if one not in gone]
        return len(gone)
