from __future__ import annotations

from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.records import Lease
from tests.mutants.registry import mutant


@mutant(
    "tasks",
    "test_10_concurrent_claims_of_marks_give_each_once",
    "test_a_claimed_mark_is_due_again_after_its_retry_seconds",
    "test_at_most_limit_marks_are_claimed_the_longest_due_first",
)
class ClaimedMarkStaysDue(InMemoryLedger):
    """A mark that cannot be carried out holds up those behind it for ever."""

    async def claim_cleanup(self, limit: int, retry_seconds: float) -> list[CleanupMark]:
        before = {id(row): (row, when) for when, row in self._due()}
        found = await super().claim_cleanup(limit, retry_seconds)
        for row, when in before.values():
            row.due_at = when
        return found


@mutant("tasks", "test_a_mark_is_stored_only_while_the_lease_holds")
class MarkNeedsNoLease(InMemoryLedger):
    """Whoever lost a task may still add to what is cleaned up after it."""

    async def add_cleanup(self, lease: Lease, mark: CleanupMark) -> None:
        self._mark(self._owned(lease.task_id, None), mark)


@mutant(
    "tasks",
    "test_files_that_are_kept_are_due_when_their_task_is_removed",
    "test_after_clear_context_the_marks_of_its_tasks_are_due_and_found_by_the_context",
)
class ClearForgetsMarks(InMemoryLedger):
    """What a cleared context had in the blob store stays there for ever."""

    def _clean_up(self, task_id: str, *, files: bool) -> None:
        if not files:
            super()._clean_up(task_id, files=files)
