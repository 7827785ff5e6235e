from __future__ import annotations

from typing import Any

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.values.tasks.push import OutboxEntry
from holdfast.values.tasks.records import ContextRecord, TaskPage
from tests.mutants.registry import mutant


@mutant(
    "tasks",
    "test_a_page_ends_before_the_task_that_does_not_fit_max_bytes",
    "test_one_task_always_comes_however_large",
    "test_a_task_of_which_something_was_left_out_says_so",
    "test_the_newest_message_comes_whatever_max_bytes_is",
)
class PagesOfAnySize(Ledger):
    """However large its tasks are, a page is full."""

    async def list(self, *args: Any, max_bytes: int | None = None, **how: Any) -> TaskPage:
        del max_bytes
        return await super().list(*args, **how)


@mutant(
    "tasks",
    "test_max_bytes_gives_the_newest_messages_of_a_context_that_fit_and_always_the_newest",
)
class ContextsOfAnySize(Ledger):
    """A context comes with all its messages."""

    async def get_context(
        self, *args: Any, max_bytes: int | None = None, **how: Any
    ) -> ContextRecord | None:
        del max_bytes
        return await super().get_context(*args, **how)


@mutant(
    "tasks",
    "test_of_each_owner_at_most_per_owner_entries_are_claimed_those_that_are_busy_counted",
    "test_owners_take_turns_first_those_with_the_fewest_entries_that_are_busy",
)
class TheOldestGoFirst(Ledger):
    """Whoever has the oldest entries gets all deliveries."""

    async def claim_outbox(
        self, *, per_owner: int | None = None, busy: Any = None, **how: Any
    ) -> list[OutboxEntry]:
        del per_owner, busy
        return await super().claim_outbox(**how)


@mutant(
    "tasks",
    "test_one_push_config_more_than_allowed_is_refused_and_a_known_one_is_replaced",
    "test_10_concurrent_push_configs_are_no_more_than_allowed",
)
class AnyNumberOfPushConfigs(Ledger):
    """A task has as many push configs as anybody stores."""

    async def upsert_push_config(
        self, *args: Any, max_configs: int | None = None, **how: Any
    ) -> None:
        del max_configs
        await super().upsert_push_config(*args, **how)
