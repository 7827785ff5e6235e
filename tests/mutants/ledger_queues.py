"""Broken priorities, limits and submits of many tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.spi.tasks.workers import TaskClaim
from holdfast.values.lifecycle import TaskState
from tests.mutants.registry import mutant


@mutant(
    "tasks",
    "test_10_concurrent_claims_keep_a_concurrency_together",
    "test_10_concurrent_claims_keep_a_rate_together",
)
class LimitsAreCountedBeforeOthersTook(InMemoryLedger):
    """Two claims count the same places, and both take them."""

    async def claim(self, claim: TaskClaim) -> list[TaskSnapshot]:
        starts = {scope: list(times) for scope, times in self._data.starts.items()}
        room = len(self._choose(claim))
        self._data.starts = starts
        await asyncio.sleep(0)
        taken = await super().claim(claim._replace(limit=room, limits=()))
        await asyncio.sleep(0)
        return taken


@mutant("tasks", "test_the_place_of_a_dead_worker_comes_back_with_its_lease")
class RecoveryKeepsThePlace(InMemoryLedger):
    """A task that is taken back from a dead worker still counts as at work."""

    async def recover_expired(self, limit: int) -> list[TaskSnapshot]:
        recovered = await super().recover_expired(limit)
        for found in recovered:
            self._data.working[found.task.id] = None
        return recovered


@mutant("tasks", "test_whatever_ends_the_work_on_a_task_gives_its_place_back")
class WaitingKeepsThePlace(InMemoryLedger):
    """A task that waits for an answer still counts as at work."""

    def _choose(self, claim: TaskClaim) -> list[TaskRow]:
        waiting = {
            row.id: None
            for row in self._data.tasks.values()
            if row.state is TaskState.INPUT_REQUIRED
        }
        at_work, self._data.working = self._data.working, {**self._data.working, **waiting}
        chosen = super()._choose(claim)
        self._data.working = at_work
        return chosen


@mutant("tasks", "test_no_more_tasks_begin_in_any_period_than_the_rate")
class RateIsForgotten(InMemoryLedger):
    """Each claim begins the period anew."""

    def _choose(self, claim: TaskClaim) -> list[TaskRow]:
        self._data.starts.clear()
        return super()._choose(claim)


@mutant("tasks", "test_a_task_of_a_higher_priority_is_claimed_first")
class PriorityIsIgnored(InMemoryLedger):
    """Tasks run in the order they came."""

    def _waiting(self, now: datetime) -> Iterator[TaskRow]:
        self._data.prioritized = False
        return super()._waiting(now)


@mutant(
    "tasks",
    "test_submit_many_with_a_submit_key_and_other_content_names_its_index_and_writes_nothing",
)
class SubmitManyStopsHalfWay(InMemoryLedger):
    """What comes before an error is stored."""

    async def submit_many(self, drafts: Sequence[Draft]) -> list[TaskSnapshot]:
        return [await self.submit(draft) for draft in drafts]


@mutant(
    "tasks", "test_a_task_that_began_with_a_version_is_claimed_only_where_that_version_is_known"
)
class AnyVersionIsClaimed(InMemoryLedger):
    """A worker claims tasks of versions that it does not have."""

    async def claim(self, claim: TaskClaim) -> list[TaskSnapshot]:
        began = {row.agent: row.handler_version for row in self._data.tasks.values()}
        known = {
            str(agent): [*claim.versions.get(str(agent), ()), *([version] if version else [])]
            for agent, version in began.items()
        }
        return await super().claim(claim._replace(versions=known))
