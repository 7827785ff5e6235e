"""Renaming of sessions: those from before owners had separate ids, or assigned by an operator."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Moved: TypeAlias = Literal["moved", "absent", "hot", "taken"]
"""Renamed; not found; refused while the session is loaded in Redis; or the new id is in use."""


@dataclass(frozen=True, slots=True)
class SessionMove:
    """A session to rename to an id of its owner.

    >>> SessionMove("acme", "c1", "ana").needs_hot_store
    False
    """

    tenant: str
    session: str
    owner: str | None
    """``None`` if several owners used it: an operator must assign it."""

    needs_hot_store: bool = False
    """Whether some of its data may be only in the hot store, Redis."""


class SessionMoves(Protocol):
    """The pending renames of sessions of all tenants, for the process that opens the stores."""

    @abstractmethod
    async def any(self) -> bool:
        """Return whether there are sessions to rename."""

    @abstractmethod
    async def skip_empty(self) -> None:
        """Delete the pending renames of sessions that have no stored data."""

    @abstractmethod
    async def pending(self, *, after: SessionMove | None = None, limit: int) -> list[SessionMove]:
        """Return sessions to rename, in order, after the last one of the previous page."""

    @abstractmethod
    async def move(self, tenant: str, old: tuple[str, str], new: tuple[str, str]) -> Moved:
        """Rename a session, given as prefix and name, and replace the prefix of its agents."""

    @abstractmethod
    async def done(self, move: SessionMove) -> None:
        """Delete a pending rename: it is done."""

    @abstractmethod
    async def unassigned(self, *, limit: int) -> list[tuple[str, str]]:
        """Return tenants and contexts whose sessions wait for an owner."""
