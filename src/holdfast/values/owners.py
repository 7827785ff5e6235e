"""How the ids of an owner are kept apart from everybody else's.

An engine stores the agents and sessions of an owner under ids that begin with the owner. Ids that
come from outside never begin with ``holdfast.``, so no client can name one.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, Literal, TypeAlias

RESERVED = "holdfast."
"""What ids that come from outside must not begin with."""

OWNED = f"{RESERVED}owner:"
UNASSIGNED = f"{RESERVED}unassigned:"
"""Before the id of a context that several owners used before owners were kept apart."""

MemoryScope: TypeAlias = Literal["owner", "shared"]
"""Whether recall and facts are the owner's own, or shared by all owners of the agent."""


class AnyOwner(Enum):
    """The type of ``ANY_OWNER``; not a text, so that no input of a client can be it.

    >>> ANY_OWNER
    ANY_OWNER
    """

    ANY_OWNER = "any owner"

    def __repr__(self) -> str:
        return self.name


ANY_OWNER: Final = AnyOwner.ANY_OWNER
"""Every owner of a tenant, for operators: ``state.tasks.list(owner=ANY_OWNER)``."""

Owner: TypeAlias = str | AnyOwner | None
"""Whose tasks a call is about: an owner's, ``""`` for those that nobody owns, ``ANY_OWNER``.

``None`` is that of the state: of a view by ``for_owner()`` its owner, else every owner.
"""

_FORM = re.compile(rf"{re.escape(OWNED)}(\d{{1,3}}):")


def owned_id(owner: str, id: str) -> str:
    """The id under which an owner's agent or session is stored; without an owner the id itself.

    >>> owned_id("ana", "c1"), owned_id("", "c1")
    ('holdfast.owner:3:ana:c1', 'c1')
    """
    return f"{OWNED}{len(owner)}:{owner}:{id}" if owner else id


def split_owned(id: str) -> tuple[str, str]:
    """The owner and the id that ``owned_id`` made one of.

    >>> split_owned("holdfast.owner:3:ana:c1"), split_owned("c1")
    (('ana', 'c1'), ('', 'c1'))
    """
    form = _FORM.match(id)
    if form is None:
        return "", id
    end = form.end() + int(form[1])
    return (id[form.end() : end], id[end + 1 :]) if id[end : end + 1] == ":" else ("", id)
