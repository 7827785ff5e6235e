"""Sessions that get other ids: from before owners were kept apart, or assigned by an operator."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Moved: TypeAlias = Literal["moved", "absent", "hot", "taken"]
"""Moved; not there; not while the hot store numbers it; or the new id is in use."""


@dataclass(frozen=True, slots=True)
class SessionMove:
    """A session that is to be moved to the ids of its owner.

    >>> SessionMove("acme", "c1", "ana").needs_hot_store
    False
    """

    tenant: str
    session: str
    owner: str | None
    """``None`` where several owners used it: an operator must assign it."""

    needs_hot_store: bool = False
    """Whether a part of it may be in the hot store alone."""


class SessionMoves(Protocol):
    """Moves of all tenants, for the process that opens the stores."""

    @abstractmethod
    async def any(self) -> bool:
        """Whether there is anything to move."""

    @abstractmethod
    async def skip_empty(self) -> None:
        """Forget moves of sessions of which nothing is stored."""

    @abstractmethod
    async def pending(self, *, after: SessionMove | None = None, limit: int) -> list[SessionMove]:
        """Sessions to move, in order, after the last one of the page before."""

    @abstractmethod
    async def move(self, tenant: str, old: tuple[str, str], new: tuple[str, str]) -> Moved:
        """Rename a session, given as prefix and name, and replace the prefix of its agents."""

    @abstractmethod
    async def done(self, move: SessionMove) -> None:
        """Forget a move that is made."""

    @abstractmethod
    async def unassigned(self, *, limit: int) -> list[tuple[str, str]]:
        """Tenants and contexts whose sessions wait for an owner."""
