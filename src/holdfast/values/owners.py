"""Stored ids of owners, which separate the data of each owner.

An engine stores the agents and sessions of an owner under ids that begin with the owner. Ids from
callers never begin with ``holdfast.``, so no client can name a stored id.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, Literal, TypeAlias

RESERVED = "holdfast."
"""The prefix that ids from callers must not have."""

OWNED = f"{RESERVED}owner:"
UNASSIGNED = f"{RESERVED}unassigned:"
"""Prefix of ids of contexts that several owners shared before ids were separate per owner."""

MemoryScope: TypeAlias = Literal["owner", "shared"]
"""Whether recall and facts are separate per owner, or shared by all owners of the agent."""


class AnyOwner(Enum):
    """The type of ``ANY_OWNER``. It is not text, so that no client input can be equal to it.

    >>> ANY_OWNER
    ANY_OWNER
    """

    ANY_OWNER = "any owner"

    def __repr__(self) -> str:
        return self.name


ANY_OWNER: Final = AnyOwner.ANY_OWNER
"""Every owner of a tenant, for operators: ``state.tasks.list(owner=ANY_OWNER)``."""

Owner: TypeAlias = str | AnyOwner | None
"""The owner of the tasks: an owner, ``""`` for tasks without one, or ``ANY_OWNER``.

``None`` is the owner of the state: that of a view by ``for_owner()``, else every owner.
"""

_FORM = re.compile(rf"{re.escape(OWNED)}([0-9]{{1,3}}):")


def owned_id(owner: str, id: str) -> str:
    """Return the stored id of an owner's agent or session; without an owner the id itself.

    >>> owned_id("ana", "c1"), owned_id("", "c1")
    ('holdfast.owner:3:ana:c1', 'c1')
    """
    return f"{OWNED}{len(owner)}:{owner}:{id}" if owner else id


def split_owned(id: str) -> tuple[str, str]:
    """Split an id that ``owned_id`` returned into the owner and the id.

    >>> split_owned("holdfast.owner:3:ana:c1"), split_owned("c1")
    (('ana', 'c1'), ('', 'c1'))
    """
    form = _FORM.match(id)
    if form is None:
        return "", id
    end = form.end() + int(form[1])
    return (id[form.end() : end], id[end + 1 :]) if id[end : end + 1] == ":" else ("", id)
