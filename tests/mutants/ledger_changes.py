"""Broken feeds of changes."""

from __future__ import annotations

from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.spi.tasks.changes import ChangePosition, FoundChanges
from tests.mutants.registry import mutant


@mutant(
    "tasks",
    "test_a_page_of_changes_goes_on_where_the_one_before_it_ended",
    "test_changes_of_concurrent_writers_are_all_in_the_feed",
)
class FeedSkipsAChange(InMemoryLedger):
    """The next page begins one change too late."""

    async def changes(self, owner: str | None, after: ChangePosition, limit: int) -> FoundChanges:
        found = await super().changes(owner, after, limit)
        last = found.last
        if found.read == limit:
            last = ChangePosition(last.place + 1, "~")
        return found._replace(last=last)


@mutant("tasks", "test_changes_gives_each_change_of_state_once")
class FeedRepeatsAChange(InMemoryLedger):
    """Each page begins with the change that the one before it ended with."""

    async def changes(self, owner: str | None, after: ChangePosition, limit: int) -> FoundChanges:
        found = await super().changes(owner, after, limit)
        return found._replace(changes=[*found.changes[:1], *found.changes])


@mutant("tasks", "test_changes_of_an_owner_are_only_those_of_its_tasks")
class FeedIsOfAllOwners(InMemoryLedger):
    """An owner sees the changes of everybody."""

    async def changes(self, owner: str | None, after: ChangePosition, limit: int) -> FoundChanges:
        del owner
        return await super().changes(None, after, limit)
