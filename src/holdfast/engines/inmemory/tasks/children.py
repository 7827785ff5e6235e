"""Tasks of the in-memory ledger that other tasks submit."""

from __future__ import annotations

from dataclasses import replace

from holdfast.engines.inmemory.tasks.client import InMemoryClients
from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.spi.tasks.children import ChildStorage
from holdfast.spi.tasks.clients import TaskListing
from holdfast.spi.tasks.conflicts import asked_to_cancel, other_arguments
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.codec import decode_json
from holdfast.values.lifecycle import TERMINAL, Actor
from holdfast.values.tasks.records import Lease


class InMemoryChildren(InMemoryClients, ChildStorage):
    """Stores child tasks, which a running task submits."""

    async def submit_child(self, lease: Lease, step: StepDraft, draft: Draft) -> TaskSnapshot:
        """Store a child and the step that names it, unless they are stored already."""
        parent = self._held(lease)
        stored = parent.steps.get(step.key)
        if stored is not None:
            if stored.digest != step.digest:
                raise other_arguments(step.key)
            return self._owned(decode_json(stored.result)["task_id"], None).snapshot()
        if parent.cancel_requested:
            raise asked_to_cancel(parent.id)
        child = await self.submit(replace(draft, owner=parent.owner))
        child.task.parent_id = parent.id
        self._keep(parent, step, Actor.WORKER)
        return child

    async def children(self, key: TaskKey, after: str, limit: int) -> TaskListing:
        """Return the children of a task, by id."""
        parent = self._find(*key)
        rows = [] if parent is None else self._below(parent.id)
        found = sorted((row for row in rows if row.id > after), key=lambda row: row.id)
        page = found[:limit]
        return TaskListing(
            [row.snapshot() for row in page], more=len(found) > len(page) > 0, total=None
        )

    def _below(self, task_id: str) -> list[TaskRow]:
        return [row for row in self._data.tasks.values() if row.parent_id == task_id]

    async def cancel_tree(self, key: TaskKey, note: str, by: str = "") -> TaskSnapshot:
        """Cancel a task and all its descendants, the deepest first."""
        root = self._owned(*key)
        tree = [root]
        for row in tree:
            tree += self._below(row.id)
        with self._acting(by):
            for row in reversed(tree):
                if row.state not in TERMINAL:
                    self._cancel(row, note)
        return root.snapshot()
