"""Finds a task by the id that a person types, in full or in part."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.owners import ANY_OWNER

SHORTEST = 4
"""Minimum length of an abbreviated id."""

SEARCHED = 1_000
"""An abbreviated id is searched among this many tasks, those that changed last."""


def short_ids(ids: Sequence[str], *, shortest: int = 8) -> dict[str, str]:
    """Return the shortest unique end of each id; ids made within an hour have the same beginning.

    >>> short_ids(["0197a1-aaaa-1234", "0197a1-bbbb-1234"])
    {'0197a1-aaaa-1234': 'aaa-1234', '0197a1-bbbb-1234': 'bbb-1234'}
    """
    distinct = list(dict.fromkeys(ids))
    length = shortest
    while len({one[-length:] for one in distinct}) < len(distinct):
        length += 1
    return {one: one[-length:] for one in distinct}


def matching(given: str, ids: Sequence[str]) -> str:
    """Return the one id that ``given`` is, or is the beginning or end of; ``""`` if there is none.

    >>> matching("1234", ["0197a1-aaaa-1234", "0197a1-bbbb-5678"])
    '0197a1-aaaa-1234'
    """
    if given in ids or len(given) < SHORTEST:
        return given if given in ids else ""
    found = [one for one in ids if one.startswith(given) or one.endswith(given)]
    if len(found) > 1:
        more = ", …" if len(found) > 5 else ""
        raise InvalidInputError(
            "id",
            f"{given!r} is ambiguous: it matches {', '.join(found[:5])}{more}. Give more of it, or "
            "the end of the id: ids of the same hours begin alike",
        )
    return found[0] if found else ""


async def full_id(ledger: TaskLedger, given: str) -> str:
    """Return the full id of a task, given in full or by a beginning or end that is unique.

    ::

        task_id = await full_id(state.tasks, "7f3e90aa")
    """
    if await ledger.get(given, owner=ANY_OWNER, messages_limit=0, artifacts=False):
        return given
    page = await ledger.list(owner=ANY_OWNER, limit=SEARCHED)
    if found := matching(given, [one.id for one in page.tasks]):
        return found
    raise NotFoundError(
        "task", given, f"no task {given!r} of this tenant: `holdfast tasks list` shows them"
    )
