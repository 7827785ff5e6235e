from __future__ import annotations

from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.workers import Outcome, StepDraft
from holdfast.values.tasks.records import Lease
from tests.mutants.registry import mutant


@mutant(
    "tasks",
    "test_a_child_is_submitted_once_under_its_step_key",
    "test_10_concurrent_submits_of_one_child_make_one",
)
class ChildIsSubmittedTwice(InMemoryLedger):
    """The step that names a child is not looked at: a handler that runs again submits another."""

    async def submit_child(self, lease: Lease, step: StepDraft, draft: Draft) -> TaskSnapshot:
        self._held(lease).steps.pop(step.key, None)
        return await super().submit_child(lease, step, draft)


@mutant("tasks", "test_a_stale_worker_submits_no_child")
class StaleWorkerSubmitsAChild(InMemoryLedger):
    """A child is submitted under any fence."""

    async def submit_child(self, lease: Lease, step: StepDraft, draft: Draft) -> TaskSnapshot:
        row = self._data.tasks[lease.task_id]
        now = Lease(row.id, row.fence, row.worker, lease.expires_at)
        return await super().submit_child(now, step, draft)


@mutant(
    "tasks",
    "test_a_parent_that_waits_is_not_claimed_until_all_its_children_have_ended",
    "test_a_child_may_end_in_any_way_and_its_parent_goes_on",
    "test_a_parent_waits_for_1000_children_and_is_due_once",
)
class EndOfAChildWakesNobody(InMemoryLedger):
    """A parent waits for ever."""

    def _wake_parent(self, child: TaskRow) -> None:
        child.awaited = False


@mutant(
    "tasks",
    "test_a_parent_that_waits_is_not_claimed_until_all_its_children_have_ended",
    "test_a_parent_waits_for_1000_children_and_is_due_once",
)
class FirstChildWakesItsParent(InMemoryLedger):
    """The end of any child makes a parent due that waits for all of them: it awaits them again."""

    def _wake_parent(self, child: TaskRow) -> None:
        parent = self._data.tasks.get(child.parent_id)
        if parent is not None and parent.waits_for:
            parent.waits_for = 1
        super()._wake_parent(child)


@mutant(
    "tasks",
    "test_children_that_have_ended_before_the_parent_waits_are_not_waited_for",
    "test_the_end_of_a_child_that_races_its_parents_wait_is_not_lost",
)
class EndedChildIsAwaited(InMemoryLedger):
    """A parent waits for children that have ended before: nobody wakes it."""

    async def transition(self, lease: Lease, outcome: Outcome) -> TaskSnapshot:
        found = await super().transition(lease, outcome)
        known = {one for one in outcome.children if one in self._data.tasks}
        row = self._data.tasks[lease.task_id]
        if known and row.waits_for < len(known):
            row.waits_for = len(known)
            self._requeue(row, row.state, row.state, None, keeps_place=False)
        return found


@mutant("tasks", "test_cancel_with_children_cancels_all_below_a_task")
class CancelLeavesGrandchildren(InMemoryLedger):
    """Only the children of the task itself are canceled with it."""

    async def cancel_tree(self, key: TaskKey, note: str, by: str = "") -> TaskSnapshot:  # noqa: ARG002
        root = self._owned(*key)
        for row in [*self._below(root.id), root]:
            self._cancel(row, note)
        return root.snapshot()
