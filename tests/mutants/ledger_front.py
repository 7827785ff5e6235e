"""Ledgers that leave a check or a step of the front out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.spi.tasks.records import lease_on
from holdfast.spi.tasks.workers import TaskClaim
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.owners import Owner
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.events import TaskEvent
from holdfast.values.tasks.records import ClaimedTask, TaskPage
from tests.mutants.registry import mutant


@mutant("tasks", "test_a_cursor_that_no_listing_gave_is_refused")
class UnreadableCursorIsTheFirstPage(Ledger):
    """A cursor that cannot be read begins the listing anew."""

    async def list(self, *, cursor: str | None = None, **how: Any) -> TaskPage:
        try:
            return await super().list(cursor=cursor, **how)
        except InvalidInputError as error:
            if error.field != "cursor":
                raise
            return await super().list(**how)


@mutant("tasks", "test_an_unknown_kind_of_mark_is_refused")
class AnyKindOfMark(Ledger):
    """A mark is stored as it comes, and nobody knows how to carry it out."""

    async def add_cleanup(self, lease: Any, kind: Any, ref: str, *, agent: str = "") -> None:
        await self._storage.add_cleanup(lease, CleanupMark(lease.task_id, kind, ref, agent))


@mutant("tasks", "test_a_workers_name_and_lease_seconds_are_checked_before_anything_is_claimed")
class AnyWorkerClaims(Ledger):
    """A claim goes to the engine as it comes."""

    async def claim(self, worker: str, **how: Any) -> list[ClaimedTask]:
        if how.keys() - {"lease_seconds"}:
            return await super().claim(worker, **how)
        claim = TaskClaim(
            worker,
            None,
            1,
            how.get("lease_seconds", 30.0),
            serial_contexts=True,
            history_length=None,
        )
        found = await self._storage.claim(claim)
        return [ClaimedTask(one.load(), lease_on(one.task)) for one in found]


@mutant("tasks", "test_follow_of_an_unknown_task_is_not_found")
class UnknownTasksAreQuiet(Ledger):
    """Nothing happens to a task that is not there."""

    async def follow(
        self, task_id: str, *, after_seq: int = 0, owner: Owner = None
    ) -> AsyncIterator[TaskEvent]:
        try:
            async for event in super().follow(task_id, after_seq=after_seq, owner=owner):
                yield event
        except NotFoundError:
            return


@mutant(
    "tasks",
    "test_pages_of_contexts_follow_each_other_without_a_gap_or_a_repeat",
)
class PageOfContextsIsTheLast(Ledger):
    """One context more than asked for is not asked for: no page has a next one."""

    async def list_contexts(self, **how: Any) -> Any:
        page = await super().list_contexts(**how)
        return type(page)(page.contexts)
