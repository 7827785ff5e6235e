"""The feed of changes of tasks."""

from __future__ import annotations

import base64
from abc import abstractmethod
from typing import Protocol, runtime_checkable

import msgspec

from holdfast.contracts.tasks.checks import check_owner
from holdfast.contracts.tasks.scope import MOST, LedgerCalls
from holdfast.spi.tasks.changes import ChangePosition
from holdfast.values.checks import check_count, check_optional_id, check_text
from holdfast.values.errors import InvalidInputError
from holdfast.values.owners import Owner
from holdfast.values.tasks.changes import TaskChanges

NOW = "now"
"""The cursor of the end of the feed: only later changes come after it."""

MAX_CHANGES = 1_000
"""How many changes one page has at most."""


@runtime_checkable
class ChangeLedger(Protocol):
    """The changes of state of all tasks, as a feed with a cursor.

    Each change is returned once, after all changes of earlier pages. A change whose transaction was
    open when a page was read is on a later page, together with all changes that began after it. So
    no change is missed, but a long transaction delays the feed. Of two changes of one task the one
    with the higher ``seq`` is the later. Changes of deleted tasks are not in the feed.

    Promises:

    - changes gives each change of state once
    - a page of changes goes on where the one before it ended
    - changes of concurrent writers are all in the feed
    - changes after now gives only what comes later
    - changes of an owner are only those of its tasks
    - one tenant never sees the changes of another
    - a page of changes reads at most its limit and says whether there is more
    - changes of a deleted task are not in the feed
    - a cursor that the feed did not return is refused
    - changes are still there after a reopen
    """

    @abstractmethod
    async def changes(
        self, after: str | None = None, *, owner: Owner = None, limit: int = 100
    ) -> TaskChanges:
        """Return up to ``limit`` changes after the cursor ``after``, and the next cursor.

        Without ``after`` the feed begins with the oldest change; ``after="now"`` returns no change
        and the cursor of the end of the feed. A page reads ``limit`` changes of the tenant and
        returns those of the owner, so it may have none although ``more`` is true.

        ::

            page = await ledger.changes("now")
            while True:
                page = await ledger.changes(page.cursor)
                for change in page.changes:
                    print(change.task_id, change.to_state)
        """
        ...


class ChangeCalls(LedgerCalls, ChangeLedger):
    """Implements ``ChangeLedger``: checks the arguments, then calls the engine's storage."""

    async def changes(
        self, after: str | None = None, *, owner: Owner = None, limit: int = 100
    ) -> TaskChanges:
        """Return the changes after the cursor ``after``, and the cursor of the next page."""
        whose, most = check_owner(owner), check_count("limit", limit)
        if most > MAX_CHANGES:
            raise InvalidInputError("limit", f"must be at most {MAX_CHANGES}, not {most}")
        if after == NOW:
            return TaskChanges([], _encode(await self._storage.last_change()))
        position = ChangePosition() if after is None else _decode(after)
        found = await self._storage.changes(whose, position, most)
        return TaskChanges(list(found.changes), _encode(found.last), more=found.read == most > 0)


def _encode(position: ChangePosition) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(list(position))).decode("ascii")


def _decode(cursor: object) -> ChangePosition:
    try:
        raw = base64.b64decode(check_text("after", cursor), altchars=b"-_", validate=True)
        place, task_id, seq = msgspec.json.decode(raw, type=tuple[int, str, int])
        check_optional_id("after", task_id)
    except ValueError:
        place, task_id, seq = -1, "", 0
    if not (0 <= place <= MOST and 0 <= seq <= MOST):
        raise InvalidInputError("after", "is not a cursor that this feed returned")
    return ChangePosition(place, task_id, seq)
