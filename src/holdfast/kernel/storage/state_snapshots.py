"""Working states between a hot store and a durable one: who has changed, and what it was."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from holdfast.kernel.storage.short_term import ShortTermMemory


@dataclass(frozen=True, slots=True)
class SavedState:
    """A state as it is kept: its values as the codec's texts, with version and window.

    >>> SavedState("s1", 7, {"step": "2"}).version
    7
    """

    session: str
    version: int
    values: dict[str, str]
    ttl_seconds: float | None = None
    expires_at: datetime | None = None
    gone: bool = False
    """It expired, or was cleared, at this version."""


class HotStates(ShortTermMemory, Protocol):
    """A short-term memory that tells which states are not in the durable store yet.

    Where a state is absent, writes raise ``AbsentStateError`` unless they are told that there is
    none elsewhere either: what was lost is restored before it is written to.
    """

    @abstractmethod
    async def restore(self, state: SavedState) -> bool:
        """Bring a state back, unless it was written since; whether there is one now."""

    @abstractmethod
    async def forget(self, session: str, *, version: int) -> bool:
        """Remove a state that is still at a version; whether it was."""

    @abstractmethod
    def sure(self) -> ShortTermMemory:
        """The same store for writers who know that an absent state is absent elsewhere too."""


class DirtyStates(Protocol):
    """The states of all tenants that were written since they were last saved."""

    @abstractmethod
    async def changed(self, tenant: str, shard: int, *, limit: int) -> list[SavedState]:
        """Some of them."""

    @abstractmethod
    async def saved(self, tenant: str, shard: int, states: Sequence[SavedState]) -> None:
        """Take the marks off those that were not written since."""


class DurableStates(Protocol):
    """The states of all tenants as they were last saved."""

    @abstractmethod
    async def save(self, tenant: str, states: Sequence[SavedState]) -> None:
        """Keep states, each unless a newer version is there."""

    @abstractmethod
    async def load(self, tenant: str, session: str) -> SavedState | None:
        """A state that neither was cleared nor has expired."""

    @abstractmethod
    async def clear(self, tenant: str, session: str, *, version: int) -> None:
        """Remember that a state was cleared at a version, so that no older one comes back."""


class AbsentStateError(Exception):
    """There is no state in the hot store; whether there is one elsewhere must be known first."""
