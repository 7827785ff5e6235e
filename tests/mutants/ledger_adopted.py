"""Ledgers that treat a task of somebody else as one of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.spi.tasks.adopted import Adoption, StoredReport
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TERMINAL
from tests.mutants.registry import mutant


@mutant(
    "tasks",
    "test_a_report_at_another_version_is_a_conflict_and_nothing_is_written",
    "test_of_10_concurrent_reports_at_one_version_one_is_taken",
)
class LastReportWins(InMemoryLedger):
    """Whoever reports last overwrites what others reported."""

    async def record(
        self, key: TaskKey, reports: Sequence[StoredReport], expected_version: int | None
    ) -> int:
        del expected_version
        return await super().record(key, reports, None)


@mutant(
    "tasks",
    "test_the_id_of_an_adopted_task_is_taken_once",
    "test_of_10_concurrent_adoptions_of_one_id_one_is_taken",
)
class SecondAdoptionIsTheFirst(InMemoryLedger):
    """An id that is taken gives somebody else's task away."""

    async def adopt(self, adoption: Adoption) -> TaskSnapshot:
        row = self._data.tasks.get(adoption.task_id)
        return await super().adopt(adoption) if row is None else row.snapshot()


@mutant("tasks", "test_a_deleted_task_leaves_the_others_of_its_context")
class DeleteLeavesItsMessages(InMemoryLedger):
    """The context goes on to count a task that is not there."""

    async def delete_task(self, key: TaskKey) -> bool:
        row = self._find(*key)
        context = None if row is None else self._context(row)
        before = [] if context is None else list(context.tasks)
        found = await super().delete_task(key)
        if context is not None and context.tasks:
            context.tasks[:] = before
        return found


@mutant(
    "tasks",
    "test_another_owners_adopted_task_is_not_found",
)
class AnyOwnerReports(InMemoryLedger):
    """A report reaches the task of another owner."""

    async def record(
        self, key: TaskKey, reports: Sequence[StoredReport], expected_version: int | None
    ) -> int:
        return await super().record(TaskKey(key.task_id, None), reports, expected_version)


@mutant("tasks", "test_another_owners_task_is_not_deleted")
class AnyOwnerDeletes(InMemoryLedger):
    """A delete reaches the task of another owner."""

    async def delete_task(self, key: TaskKey) -> bool:
        return await super().delete_task(TaskKey(key.task_id, None))


@mutant("tasks", "test_an_adopted_id_or_owner_that_begins_with_holdfast_is_refused")
class AnyIdIsAdopted(Ledger):
    """An id that looks like one of a view's own is taken."""

    async def adopt(self, task_id: str, **how: Any) -> Any:
        if not task_id.startswith("holdfast."):
            return await super().adopt(task_id, **how)
        adoption = Adoption(task_id, AgentId.parse(how["agent"]), "", "c1", "{}", ())
        return (await self._storage.adopt(adoption)).load()


@mutant("tasks", "test_an_adopted_task_that_has_ended_takes_no_report")
class EndIsNotTheEnd(InMemoryLedger):
    """A task that has ended takes messages and artifacts."""

    async def record(
        self, key: TaskKey, reports: Sequence[StoredReport], expected_version: int | None
    ) -> int:
        row: TaskRow | None = self._find(*key)
        if row is None or row.state not in TERMINAL or expected_version != row.version:
            return await super().record(key, reports, expected_version)
        if any(hasattr(report, "state") for report in reports):
            return await super().record(key, reports, expected_version)
        self._report(row, reports)
        return row.version
