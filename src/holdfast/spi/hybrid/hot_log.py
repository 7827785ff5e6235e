"""The hot log: where events are acknowledged fast, until a consolidator has made them durable.

``HotLog`` is what a writer and a reader of one tenant need, ``HotQueue`` what consolidators need.
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
"""How many events of a session stay at hand after they were flushed."""

SEEN_SECONDS = 3600
"""How long, at the least, an event id is known after its event was flushed."""


@dataclass(frozen=True, slots=True)
class Marks:
    """How many turns may wait in one shard of a tenant before writers are held up.

    >>> Marks(soft=10, hard=20).soft
    10
    """

    soft: int = 20_000
    """From here on every append waits until its shard is flushed."""

    hard: int = 200_000
    """From here on nothing is taken."""


@dataclass(frozen=True, slots=True)
class Appended:
    """All entries are in the hot log.

    >>> Appended({}, {}).crowded
    False
    """

    positions: dict[str, tuple[int, int]]
    """By the key of the entry."""

    marks: dict[str, str]
    """By the key of the entry its turn in its shard; empty for one that was there already."""

    crowded: bool = False
    """A soft mark was passed: wait for the flush."""

    first: dict[str, datetime] = field(default_factory=dict)
    """By the key of an entry that was there already the time that it has there."""


@dataclass(frozen=True, slots=True)
class Cold:
    """Nothing was written: the hot log does not know where the session's numbers go on.

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
    """What the hot log has of a session.

    >>> Window().hot
    False
    """

    hot: bool = False
    """Whether the hot log numbers this session now."""

    known: Known | None = None
    """Where it was when the hot log last numbered it; ``None`` when it knows nothing."""

    floor: tuple[int, int] = BEGINNING
    """Everything after this position is here; at ``BEGINNING`` the whole log is."""

    entries: list[PositionedEntry] = field(default_factory=list)
    unflushed: frozenset[str] = frozenset()
    """The ids of those entries that are not known to be durable."""

    cut: bool = False
    """Whether older entries may have been left out, because only the newest were asked for."""

    gaps: tuple[Gap, ...] = ()
    orphaned: bool = False
    """Entries of the session wait in the hot log, which does not know the session any more."""


@dataclass(frozen=True, slots=True)
class HotTurn:
    """An entry in the hands of a consolidator, as bytes.

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


@dataclass(frozen=True, slots=True)
class Work:
    """What there is to do in the shards: logs and states to flush, sessions to unload.

    >>> Work().flush
    ()
    """

    flush: tuple[tuple[str, int], ...] = ()
    """Tenants, each with a shard that has something to flush."""

    idle: tuple[tuple[str, str], ...] = ()
    """Sessions by tenant that have rested long enough."""

    clean: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    """Tenants, each with a shard and sessions whose saved states may have been unused for long."""


@dataclass(frozen=True, slots=True)
class HotStats:
    """How far the consolidators are behind.

    >>> HotStats(pending=3, oldest_seconds=0.5).memory_ratio
    0.0
    """

    pending: int
    oldest_seconds: float
    memory_ratio: float = 0.0
    """Of the memory that the server may use; 0 when it may use all."""

    quarantined: int = 0
    """Damaged values that were moved out of the way and are still kept."""

    bytes_by_tenant: Mapping[str, int] = field(default_factory=dict)
    """About how much memory the unflushed events of each tenant take."""


class HotLog(Protocol):
    """The hot log of one tenant.

    One script assigns the numbers of a session, and only for a session that was granted to it by
    the durable log: ``Cold`` and ``UsedUp`` say that a grant is needed first.
    """

    writer: str
    """This process, which acknowledges events before they are durable; empty if it does not."""

    @abstractmethod
    def shard_of(self, session: str) -> int:
        """Where a session lives."""

    @abstractmethod
    async def append(self, entries: Sequence[LogEntry]) -> Appended | Cold | UsedUp:
        """Append entries with different keys, all or none, in one round trip.

        ``ConflictError`` for a known id with another content (see ``LogEntry.content``),
        ``BackPressureError`` at the hard mark.
        """

    @abstractmethod
    async def window(self, session: str, *, last: int | None = None) -> Window:
        """What is at hand of a session, in the order of its log: all of it, or its newest entries.

        At least the ``last`` newest; none of those is left out.
        """

    @abstractmethod
    async def look(self, session: str) -> tuple[Window, StateSnapshot]:
        """What is at hand of a session and of its working state, in one round trip."""

    @abstractmethod
    async def tail(self, agent: str | None) -> list[PositionedEntry]:
        """What an agent, or every agent, has in all sessions that is not flushed."""

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
        """Load a session with its grant and its window, unless it has a newer grant."""

    @abstractmethod
    async def reserve(self, session: str, *, grant_version: int, reserved: Reserved) -> None:
        """Raise the limit of a session's numbers, if the grant is still the same."""

    @abstractmethod
    async def set_gaps(self, session: str, gaps: Sequence[Gap]) -> None:
        """What is lost of a session by now, if the hot log knows the session."""

    @abstractmethod
    async def known(self, sessions: Sequence[str]) -> dict[str, int]:
        """The grant versions of those sessions that the hot log knows."""

    @abstractmethod
    async def forget(
        self, session: str, gone: Sequence[PositionedEntry], ids: dict[str, tuple[int, int]]
    ) -> None:
        """Drop entries from the window, and ids at their positions from what was seen."""

    @abstractmethod
    async def missing(self, entries: Sequence[PositionedEntry]) -> list[PositionedEntry]:
        """Those entries that are not in the hot log's streams: flushed, or lost."""


class HotQueue(Protocol):
    """The hot log of all tenants, as consolidators see it."""

    @abstractmethod
    async def work(self, *, rested_seconds: float, unused_seconds: float = 0) -> Work:
        """What there is to do now; ``unused_seconds`` 0 leaves out the states to evict."""

    @abstractmethod
    async def length(self, tenant: str, shard: int) -> int:
        """How many turns wait in a shard of a tenant."""

    @abstractmethod
    async def claim(self, tenant: str, shard: int, *, limit: int) -> list[HotTurn]:
        """The oldest turns of a shard, also those that somebody else has claimed."""

    @abstractmethod
    async def give_back(self, tenant: str, shard: int, turns: Sequence[HotTurn]) -> None:
        """Let claimed turns count as not delivered, unless somebody has claimed them since."""

    @abstractmethod
    async def acknowledge(
        self, tenant: str, shard: int, turns: Sequence[tuple[HotTurn, Outcome]]
    ) -> None:
        """Drop turns that are durable; those that were not stored also from the window."""

    @abstractmethod
    async def unload(self, tenant: str, session: str) -> int | None:
        """Mark an idle session as cold. Returns its grant version, ``None`` if it is not idle."""

    @abstractmethod
    async def unloaded(self, tenant: str, session: str, *, grant_version: int) -> None:
        """Set the expiry of a cold session's window."""

    @abstractmethod
    async def stats(self) -> HotStats:
        """How far behind."""
