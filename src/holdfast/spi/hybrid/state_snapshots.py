"""Working states in the hot store (Redis), which are saved to the durable one (Postgres)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from holdfast.values.states import StateVersion, StateWrite


@dataclass(frozen=True, slots=True)
class SavedState:
    """A state as it is saved: its values as the codec's texts, with version and expiry.

    >>> SavedState("s1", 7, {"step": "2"}).version
    7
    """

    session: str
    version: int
    values: dict[str, str]
    ttl_seconds: float | None = None
    expires_at: datetime | None = None
    gone: bool = False
    """Whether the state expired, or was cleared, at this version."""

    lineage: int = 0
    """A number that changes with each restore, because a restored state may lack writes."""

    base: int = 0
    """The saved version with which its lineage began; 0 if there was none."""

    stamp: int = 0
    """The stamp of the last fallback write that it includes."""

    saved_at: datetime | None = None
    """When it was saved, by the durable store's clock."""

    writers: frozenset[str] = frozenset()
    """The processes that may have acknowledged writes which were not saved."""

    eviction: int = 0
    """The number of the last eviction from the hot store that the durable store has recorded."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """States of one shard that are about to be evicted from the hot store, without their values.

    >>> Eviction(7, (SavedState("s1", 3, {}),)).number
    7
    """

    number: int
    """Higher than the number of every earlier eviction in the shard."""

    states: tuple[SavedState, ...] = ()
    doubtful: frozenset[str] = frozenset()
    """Sessions that were restored after Redis lost data: their writers stay registered."""


@dataclass(frozen=True, slots=True)
class Written:
    """The version that a write created, and its lineage.

    >>> Written(7, lineage=3).version
    7
    """

    version: int
    lineage: int


@dataclass(frozen=True, slots=True)
class FallbackWrite:
    """All writes to a state while the hot store was down, combined into one.

    >>> from datetime import UTC
    >>> noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    >>> fallback = FallbackWrite(StateWrite("s1", {"b": "2"}), 7, False, noon, noon)
    >>> fallback.over(SavedState("s1", 3, {"a": "1"})).values
    {'a': '1', 'b': '2'}
    """

    write: StateWrite
    stamp: int
    """Its number: higher than the stamp of every earlier fallback write."""

    cleared: bool
    """The state was cleared meanwhile: its earlier ``ttl_seconds`` no longer applies."""

    written_at: datetime
    now: datetime
    """When it was read, by the clock of ``written_at``."""

    @property
    def is_over(self) -> bool:
        """Whether it has expired by its own ``ttl_seconds``."""
        ttl = self.write.ttl_seconds
        return ttl is not None and self.written_at + timedelta(seconds=ttl) <= self.now

    def over(self, saved: SavedState | None) -> SavedState | None:
        """Return the saved state with the write applied; ``None`` if no state is left."""
        write = self.write
        before = {} if saved is None or write.fresh else saved.values
        ttl = write.ttl_seconds
        if ttl is None and saved is not None and not self.cleared:
            ttl = saved.ttl_seconds
        expires = None if ttl is None else self.written_at + timedelta(seconds=ttl)
        if write.gone or (expires is not None and expires <= self.now):
            return None
        values = {key: text for key, text in before.items() if key not in write.dropped}
        version = max(0 if saved is None else saved.version, self.stamp) + 1
        return SavedState(
            *(write.session, version, {**values, **write.values}, ttl, expires),
            stamp=0 if saved is None else saved.stamp,
        )


class DirtyStates(Protocol):
    """The states of all tenants that were written since they were last saved."""

    @abstractmethod
    async def changed(self, tenant: str, shard: int, *, limit: int) -> list[SavedState]:
        """Return some of the changed states."""

    @abstractmethod
    async def read(self, tenant: str, shard: int, sessions: Sequence[str]) -> list[SavedState]:
        """Return the states of some sessions that exist or are dirty."""

    @abstractmethod
    async def drop(self, tenant: str, shard: int, states: Sequence[SavedState]) -> None:
        """Delete states of a lineage that the durable store does not accept."""

    @abstractmethod
    async def saved(self, tenant: str, shard: int, states: Sequence[SavedState]) -> None:
        """Record that these states are saved, except those that were written since."""


class DurableStates(Protocol):
    """The states of all tenants as they were last saved."""

    @abstractmethod
    async def save(self, tenant: str, states: Sequence[SavedState]) -> None:
        """Save states; skip one whose saved version is newer, or is not included in it."""

    @abstractmethod
    async def versions(self, tenant: str, sessions: Sequence[str]) -> dict[str, SavedState]:
        """Return saved states without their values, also those that were cleared or expired."""

    @abstractmethod
    async def load(self, tenant: str, session: str) -> SavedState | None:
        """Return the saved state of a session; ``gone`` if it was cleared or has expired."""

    @abstractmethod
    async def earlier_versions(
        self, tenant: str, session: str, before: int, limit: int
    ) -> list[StateVersion]:
        """Return the kept versions that are lower than ``before``, the newest first.

        Saved versions are kept, up to the number that the store was opened with.
        """

    @abstractmethod
    async def load_version(self, tenant: str, session: str, version: int) -> SavedState | None:
        """Return this version of a state, current or kept; ``None`` if it is not kept."""

    @abstractmethod
    async def register(self, tenant: str, session: str, writer: str, *, eviction: int) -> None:
        """Record that a process will acknowledge writes to a state before they are saved.

        ``eviction`` is the number from ``UnregisteredError``: no eviction up to that number removes
        the writer again.
        """

    @abstractmethod
    async def evict(self, tenant: str, eviction: Eviction) -> set[str]:
        """Find states whose saved version equals that in the hot store; unregister their writers.

        Returns the sessions. A state to which a writer was registered since the eviction began is
        left out.
        """

    @abstractmethod
    async def clear(self, tenant: str, session: str, *, version: int) -> None:
        """Record that a state was cleared at this version, so that no older version is restored."""


class CleanStates(Protocol):
    """The states of all tenants that are saved, and may be evicted from the hot store."""

    @abstractmethod
    async def begin_eviction(
        self, tenant: str, shard: int, sessions: Sequence[str], *, unused_seconds: float
    ) -> Eviction:
        """Choose states that are saved and were neither written nor read for ``unused_seconds``.

        From now on no write to them is acknowledged before its writer is registered again.
        """

    @abstractmethod
    async def evict(
        self, tenant: str, shard: int, eviction: Eviction, sessions: Collection[str]
    ) -> int:
        """Delete states that were not written since the eviction began. Returns how many.

        ``sessions`` are those that ``DurableStates.evict`` returned.
        """


class FallbackWrites(Protocol):
    """Writes to states that the durable store keeps while the hot store is down, of all tenants."""

    @abstractmethod
    async def write(self, tenant: str, write: StateWrite) -> int:
        """Store a write, merged with earlier fallback writes of its session. Returns its stamp."""

    @abstractmethod
    async def read(self, tenant: str, session: str) -> FallbackWrite | None:
        """Return the combined write of a session, or ``None``."""

    @abstractmethod
    async def waiting(self, *, limit: int) -> list[tuple[str, str]]:
        """Return up to ``limit`` pairs of tenant and session that have fallback writes."""

    @abstractmethod
    async def merged(self, tenant: str, fallback: FallbackWrite) -> None:
        """Delete a fallback write that the hot store has now, unless it has changed since."""


class UnregisteredError(Exception):
    """This process is not registered in the durable store as a writer of a state."""

    def __init__(self, session: str, *, eviction: int) -> None:
        super().__init__(session)
        self.eviction = eviction
        """The number of the last eviction in the shard, which the registration comes after."""


class RemovedStateError(Exception):
    """A state was evicted or cleared after the version to restore was read."""

    def __init__(self, session: str, *, eviction: int) -> None:
        super().__init__(session)
        self.eviction = eviction
        """The number of that eviction."""


class AbsentStateError(Exception):
    """The hot store has no state: the caller must first check whether the durable store has one."""
