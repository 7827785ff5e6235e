"""Working states, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from holdfast.spi.hybrid.state_snapshots import FallbackWrite, SavedState, Written
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import VersionConflictError
from holdfast.values.states import StateSnapshot, StateWrite

__all__ = [
    "HotStates",
    "StateSnapshot",
    "StateStorage",
    "StateWrite",
    "VersionConflictError",
    "decode_json",
    "encode_json",
]


class StateStorage(Protocol):
    """The states of one tenant. Every argument is checked; values are JSON texts.

    A state that has expired is absent. A version is higher than all before it of its session, also
    than those of a state that was cleared or has expired.
    """

    @abstractmethod
    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state with its version and expiry, all of it or some keys, as of one moment.

        An absent state is ``StateSnapshot({})``.
        """

    @abstractmethod
    async def write(self, write: StateWrite, expected: int | None) -> None:
        """Replace or patch a state, in one step, and start its window again.

        A write without ``ttl_seconds`` keeps the window. Raises ``VersionConflictError`` if
        ``expected`` is given and not the version; that of an absent state is 0.
        """

    @abstractmethod
    async def clear(self, session: str) -> None:
        """Delete a state, if there is one."""


class HotStates(StateStorage, Protocol):
    """States in front of a durable store, which may have those that are absent here.

    A write to an absent state raises ``AbsentStateError``, unless it says that the durable store
    has none either: what was lost is restored before it is written to.
    """

    writer: str
    """This process, which acknowledges writes before they are saved; empty if it does not."""

    @abstractmethod
    def shard_of(self, session: str) -> int:
        """Where a session lives."""

    @abstractmethod
    async def put(
        self,
        write: StateWrite,
        *,
        expected_version: int | None = None,
        base: int | None = None,
        registered: int | None = None,
    ) -> Written:
        """Do a write and return its version; an absent state is made only with a ``base``.

        ``base`` is the version at which the durable store has no state, 0 if it never had one.

        ``UnregisteredError`` unless the durable store knows that this process writes to the state:
        ``registered`` is the number with which it was registered since the last such error.
        """

    @abstractmethod
    async def restore(
        self,
        state: SavedState,
        *,
        base: int,
        unsaved: bool = False,
        as_of: datetime | None = None,
        eviction: int = 0,
    ) -> bool:
        """Bring a state back, unless it was written since; whether there is one now.

        ``base`` is the version that the durable store has.
        ``unsaved``: it has more than what was saved, so that it is to be saved again. ``as_of``:
        later writes of others may be lost; its readers are told, until it is written to.
        ``RemovedStateError`` if the state was evicted or cleared later than ``eviction``: then the
        durable store may have another one by now, and is read again.
        """

    @abstractmethod
    async def forget(self, session: str, *, version: int) -> bool:
        """Remove a state that is still at a version; whether it was."""

    @abstractmethod
    async def merge(self, fallback: FallbackWrite, *, base: int | None = None) -> Written:
        """Apply fallback writes once. Returns the version with them, 0 if there is no state now.

        As with ``put``, an absent state is made only with a ``base``.
        """
