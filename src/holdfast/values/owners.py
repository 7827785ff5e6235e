"""How the ids of an owner are kept apart from everybody else's.

An engine stores the agents and sessions of an owner under ids that begin with the owner. Ids that
come from outside never begin with ``holdfast.``, so no client can name one.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

RESERVED = "holdfast."
"""What ids that come from outside must not begin with."""

OWNED = f"{RESERVED}owner:"
UNASSIGNED = f"{RESERVED}unassigned:"
"""Before the id of a context that several owners used before owners were kept apart."""

MemoryScope: TypeAlias = Literal["owner", "shared"]
"""Whether recall and facts are the owner's own, or shared by all owners of the agent."""

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
