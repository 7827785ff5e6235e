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
    """Raise ``VersionConflictError`` unless ``actual`` is ``expected`` or that is ``None``.

    >>> expect_version("s1", None, 7)
    """
    if expected is not None and expected != actual:
        raise VersionConflictError("state", session, expected=expected, actual=actual)


class StateStorage(Protocol):
    """The states of one tenant. The caller checks all arguments; values are JSON texts.

    A state that has expired is absent. A version is higher than all before it of its session, also
    than those of a state that was cleared or has expired.
    """

    @abstractmethod
    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state, or some of its keys, with its version and expiry, in one read.

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
        """Replace or patch a state, restart its time to live, and return its version; in one step.

        A write without ``ttl_seconds`` keeps the time to live of the state. Raises
        ``VersionConflictError`` if ``expected`` is given and is not the version; the version of an
        absent state is 0.
        """

    @abstractmethod
    async def clear(self, session: str) -> None:
        """Delete a state, if there is one, with all its versions."""

    keeps_versions: bool = False
    """Whether the engine can keep earlier versions of a state."""

    async def versions(self, session: str, before: int, limit: int) -> list[StateVersion]:
        """Return the kept versions that are lower than ``before``, the newest first.

        Each write makes a version. As many are kept as ``kept_versions`` of the last write. An
        absent state has none.
        """
        del session, before, limit
        return []

    async def read_version(self, session: str, version: int) -> StateSnapshot | None:
        """Return this version of a state, current or kept; ``None`` if it is not kept.

        Its expiry is that of the state.
        """
        newest = await self.read(session, None)
        return newest if version and newest.version == version else None


class HotStates(StateStorage, Protocol):
    """The states in Redis. A state that is absent here may be in the durable store.

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
        ``unsaved``: it includes unsaved writes, so it must be saved again. ``as_of``: writes of
        other processes after this time may be lost; readers are given this time until the state is
        written to. Raises
        ``RemovedStateError`` if the state was evicted or cleared later than ``eviction``: the
        durable store may have a newer state by now, so the caller must read it again.
        """

    @abstractmethod
    async def forget(self, session: str, *, version: int) -> bool:
        """Delete a state if it still has this version. Returns whether it had it."""

    @abstractmethod
    async def merge(self, fallback: FallbackWrite, *, base: int | None = None) -> Written:
        """Apply fallback writes once. Returns the version that has them; 0 if no state is left.

        As with ``put``, an absent state is created only with a ``base``.
        """
