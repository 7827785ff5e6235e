"""Working states, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.spi.hybrid.state_snapshots import FallbackWrite, SavedState, Written
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import VersionConflictError
from holdfast.values.states import StateSnapshot, StateVersion, StateWrite

__all__ = [
    "HotStates",
    "StateSnapshot",
    "StateStorage",
    "StateVersion",
    "StateWrite",
    "VersionConflictError",
    "decode_json",
    "encode_json",
    "expect_version",
]


def expect_version(session: str, expected: int | None, actual: int) -> None:
    """Raise ``VersionConflictError`` if a state has another version than expected, if any.

    >>> expect_version("s1", None, 7)
    """
    if expected is not None and expected != actual:
        raise VersionConflictError("state", session, expected=expected, actual=actual)


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

    async def read_many(self, sessions: Sequence[str]) -> list[StateSnapshot]:
        """Return the states of sessions, one for each in the same order.

        The caller may change each of them, also if a session is named twice. An engine with a
        server overrides it, and reads them in one round trip.
        """
        return [await self.read(session, None) for session in sessions]

    @abstractmethod
    async def write(self, write: StateWrite, expected: int | None) -> int:
        """Replace or patch a state, in one step, start its window again, and return its version.

        A write without ``ttl_seconds`` keeps the window. Raises ``VersionConflictError`` if
        ``expected`` is given and not the version; that of an absent state is 0.
        """

    @abstractmethod
    async def clear(self, session: str) -> None:
        """Delete a state, if there is one, with all its versions."""

    keeps_versions: bool = False
    """Whether it keeps earlier versions of a state, if a write asks for that."""

    async def versions(self, session: str, before: int, limit: int) -> list[StateVersion]:
        """Return the versions that are kept and lower than ``before``, the newest first.

        The version of each write is kept, as many as the last write asked for with
        ``kept_versions``. An absent state has none.
        """
        del session, before, limit
        return []

    async def read_version(self, session: str, version: int) -> StateSnapshot | None:
        """Return a version that is kept, or the state if it has this version, else ``None``.

        Its expiry is that of the state.
        """
        newest = await self.read(session, None)
        return newest if version and newest.version == version else None


class HotStates(StateStorage, Protocol):
    """States in front of a durable store, which may have those that are absent here.

    A write to an absent state raises ``AbsentStateError``, so that a lost state is restored before
    it is written to. With ``base`` the caller confirms that the durable store has none either.
    """

    writer: str
    """The id of this process if it acknowledges writes before they are saved, else empty."""

    @abstractmethod
    def shard_of(self, session: str) -> int:
        """Return the shard of a session."""

    @abstractmethod
    async def put(
        self,
        write: StateWrite,
        *,
        expected_version: int | None = None,
        base: int | None = None,
        registered: int | None = None,
    ) -> Written:
        """Write to a state and return its version. Creates an absent state only with a ``base``.

        ``base`` is the version at which the durable store has no state, 0 if it never had one.

        Raises ``UnregisteredError`` unless this process is registered in the durable store as a
        writer of the state. ``registered`` is the number with which it registered after that error.
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
        """Restore a state, unless it was written since. Returns whether there is one now.

        ``base`` is the version that the durable store has.
        ``unsaved``: it includes unsaved writes, so it must be saved again. ``as_of``: later writes
        of other processes may be lost; readers get this time until the state is written to. Raises
        ``RemovedStateError`` if the state was evicted or cleared later than ``eviction``: the
        durable store may have a newer state by now, so the caller must read it again.
        """

    @abstractmethod
    async def forget(self, session: str, *, version: int) -> bool:
        """Delete a state if it is still at a version. Returns whether it was."""

    @abstractmethod
    async def merge(self, fallback: FallbackWrite, *, base: int | None = None) -> Written:
        """Apply fallback writes once. Returns the version with them, 0 if there is no state now.

        As with ``put``, an absent state is created only with a ``base``.
        """
