"""The hot log (Redis): acknowledges events fast, and keeps them until they are flushed.

Consolidators flush them to the durable log (Postgres). ``HotLog`` is for writers and readers of one
tenant, ``HotQueue`` for consolidators.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from holdfast.spi.hybrid.durable_log import Grant, Known, Outcome, Reserved
from holdfast.spi.hybrid.hot_entry import BEGINNING, PositionedEntry
from holdfast.spi.log_entry import LogEntry
from holdfast.values.states import StateSnapshot
from holdfast.values.wakes import Gap

WINDOW = 100
"""How many events of a session stay in the hot log after they were flushed."""

SEEN_SECONDS = 3600
"""How long, at least, the hot log remembers an event id after the flush."""


@dataclass(frozen=True, slots=True)
class Marks:
    """How many unflushed events a tenant's shard may hold before appends are slowed or refused.

    >>> Marks(soft=10, hard=20).soft
    10
    """

    soft: int = 20_000
    """From this length on every append waits until its shard is flushed."""

    hard: int = 200_000
    """From this length on every append is refused."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: all entries are in the hot log.

    >>> Appended({}, {}).crowded
    False
    """

    positions: dict[str, tuple[int, int]]
    """Positions by the key of the entry."""

    marks: dict[str, str]
    """Stream ids by the key of the entry; empty for an entry that was there already."""

    crowded: bool = False
    """Whether the soft limit is exceeded: the writer then waits for the flush."""

    first: dict[str, datetime] = field(default_factory=dict)
    """Stored times by the key of the entry, for entries that were there already."""


@dataclass(frozen=True, slots=True)
class Cold:
    """Nothing was written: the hot log has no grant for the session.

    >>> Cold("s1").session
    's1'
    """

    session: str


@dataclass(frozen=True, slots=True)
class UsedUp:
    """Nothing was written: the numbers that were reserved for the session are used up.

    >>> UsedUp("s1", grant_version=3, epoch=1).grant_version
    3
    """

    session: str
    grant_version: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Window:
    """The newest entries of a session, as the hot log has them.

    >>> Window().hot
    False
    """

    hot: bool = False
    """Whether the hot log has a grant for the session, and assigns its numbers."""

    known: Known | None = None
    """The last position that the hot log assigned; ``None`` if it does not know the session."""

    floor: tuple[int, int] = BEGINNING
    """The window has all entries after this position; with ``BEGINNING``, the whole log."""

    entries: list[PositionedEntry] = field(default_factory=list)
    unflushed: frozenset[str] = frozenset()
    """The ids of the entries that may not be in the durable log yet."""

    cut: bool = False
    """Whether older entries may be left out, because the caller asked for the newest only."""

    gaps: tuple[Gap, ...] = ()
    orphaned: bool = False
    """Whether the hot log has unflushed entries of the session, but lost its metadata."""


@dataclass(frozen=True, slots=True)
class HotTurn:
    """An entry that a consolidator has claimed, as bytes.

    >>> HotTurn("1-0", "s1", "e1", 1, 1, b"", deliveries=1).epoch
    1
    """

    mark: str
    session: str
    event_id: str
    epoch: int
    seq: int
    payload: bytes
    deliveries: int
    awaited: bool = False
    """Whether its writer acknowledges it only once it is stored."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of consolidators: shards to flush, sessions to unload, states to evict.

    >>> Work().flush
    ()
    """

    flush: tuple[tuple[str, int], ...] = ()
    """Pairs of a tenant and a shard that has something to flush."""

    idle: tuple[tuple[str, str], ...] = ()
    """Pairs of a tenant and a session that has been idle long enough to be unloaded."""

    clean: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    """Tenant, shard, and the sessions whose saved states may have been unused for long enough."""


@dataclass(frozen=True, slots=True)
class HotStats:
    """The backlog of the consolidators.

    >>> HotStats(pending=3, oldest_seconds=0.5).memory_ratio
    0.0
    """

    pending: int
    oldest_seconds: float
    memory_ratio: float = 0.0
    """The used share of the server's ``maxmemory``; 0 if that is not set."""

    quarantined: int = 0
    """How many damaged values are in the quarantine."""

    bytes_by_tenant: Mapping[str, int] = field(default_factory=dict)
    """About how much memory the unflushed events of each tenant take."""


class HotLog(Protocol):
    """The hot log of one tenant.

    One script assigns the numbers of a session, and only under a grant of the durable log. If the
    result is ``Cold`` or ``UsedUp``, the caller must first get a grant, or more numbers.
    """

    writer: str
    """The id of this process if it acknowledges events before they are durable, else empty."""

    divided: bool = False
    """Whether the shards may be on several servers, so that a batch must be of one shard."""

    @abstractmethod
    def shard_of(self, session: str) -> int:
        """Return the shard of a session."""

    @abstractmethod
    async def append(self, entries: Sequence[LogEntry]) -> Appended | Cold | UsedUp:
        """Append entries with different keys, all or none, in one round trip.

        Raises ``ConflictError`` for a known id with another content (see ``LogEntry.content``), and
        ``BackPressureError`` at the hard limit.
        """

    @abstractmethod
    async def window(self, session: str, *, last: int | None = None) -> Window:
        """Return the window of a session in log order: all of it, or its newest entries.

        With ``last`` it has at least that many of the newest entries, if there are so many.
        """

    @abstractmethod
    async def look(self, session: str) -> tuple[Window, StateSnapshot]:
        """Return the window and the working state of a session, in one round trip."""

    @abstractmethod
    async def tail(self, agent: str | None) -> list[PositionedEntry]:
        """Return the unflushed entries of one agent or all agents, in all sessions."""

    @abstractmethod
    async def lock(self, session: str, *, seconds: float) -> str:
        """Acquire the session's lock for ``seconds``. Returns its token, ``""`` if it is held."""

    @abstractmethod
    async def unlock(self, session: str, token: str) -> None:
        """Release the lock."""

    @abstractmethod
    async def load(
        self,
        session: str,
        grant: Grant,
        *,
        floor: tuple[int, int],
        entries: Sequence[PositionedEntry],
    ) -> None:
        """Load a session with its grant and its newest entries, all that come after ``floor``.

        Does nothing if the session has a newer grant.
        """

    @abstractmethod
    async def reserve(self, session: str, *, grant_version: int, reserved: Reserved) -> None:
        """Raise the limit of a session's numbers, if the grant is still the same."""

    @abstractmethod
    async def set_gaps(self, session: str, gaps: Sequence[Gap]) -> None:
        """Set the gaps of a session, if the hot log knows the session."""

    @abstractmethod
    async def known(self, sessions: Sequence[str]) -> dict[str, int]:
        """Return the grant versions of the sessions that the hot log knows."""

    @abstractmethod
    async def forget(
        self, session: str, gone: Sequence[PositionedEntry], ids: dict[str, tuple[int, int]]
    ) -> None:
        """Delete entries from the window, and the remembered ids at the given positions."""

    @abstractmethod
    async def missing(self, entries: Sequence[PositionedEntry]) -> list[PositionedEntry]:
        """Return the entries that are not in the hot log's streams: flushed, or lost."""


class HotQueue(Protocol):
    """The hot log of all tenants, for consolidators."""

    @abstractmethod
    async def work(self, *, rested_seconds: float, unused_seconds: float = 0) -> Work:
        """Return the work to do now; if ``unused_seconds`` is 0, without states to evict."""

    @abstractmethod
    async def length(self, tenant: str, shard: int) -> int:
        """Return the number of unflushed events in a shard of a tenant."""

    @abstractmethod
    async def claim(self, tenant: str, shard: int, *, limit: int) -> list[HotTurn]:
        """Claim the oldest unflushed events of a shard, also those that were claimed before."""

    @abstractmethod
    async def give_back(self, tenant: str, shard: int, turns: Sequence[HotTurn]) -> None:
        """Return claimed events without counting their delivery, unless they were claimed again."""

    @abstractmethod
    async def acknowledge(
        self, tenant: str, shard: int, turns: Sequence[tuple[HotTurn, Outcome]]
    ) -> None:
        """Delete flushed events from the stream, and those not stored also from the window."""

    @abstractmethod
    async def unload(self, tenant: str, session: str) -> int | None:
        """Stop numbering an idle session. Returns its grant version, ``None`` if it is not idle."""

    @abstractmethod
    async def unloaded(
        self, tenant: str, session: str, *, grant_version: int, keep: bool = True
    ) -> None:
        """Set the expiry of an unloaded session's window, or delete it if ``keep`` is false."""

    @abstractmethod
    async def stats(self) -> HotStats:
        """Return the size and age of the backlog."""
