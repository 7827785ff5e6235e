"""The durable log behind a hot one: grants of numbers, flushes, tombstones, gaps, dead letters.

``DurableLog`` is what a writer and a reader of one tenant need, ``DurableQueue`` what consolidators
and operators need.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.log_entry import LogEntry
from holdfast.values.wakes import Gap


@dataclass(frozen=True, slots=True)
class Known:
    """The last position of a session that the hot log assigned, and by which grant.

    >>> Known(epoch=1, seq=40, grant_version=2).grant_version
    2
    """

    epoch: int
    seq: int
    grant_version: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """Up to which number a grant goes, and who may acknowledge before it is stored.

    >>> Reserved(1000, ("w1",)).limit
    1000
    """

    limit: int
    writers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """The right to number a session: after ``seq``, up to ``limit``.

    A newer grant of a session has a higher ``grant_version``.


    >>> Grant(epoch=1, seq=0, limit=1000, grant_version=1).limit
    1000
    """

    epoch: int
    seq: int
    limit: int
    grant_version: int
    gaps: tuple[Gap, ...] = ()


class Outcome(StrEnum):
    """What a flush made of an entry.

    >>> Outcome("stored").kept
    True
    """

    STORED = "stored"
    """It is in the log, now or since an earlier flush."""
    COVERED = "covered"
    """A clear came first."""
    KNOWN = "known"
    """Its id is in the log already, at another position."""
    DEAD = "dead"
    """It cannot be stored as it is, and lies among the dead letters."""

    @property
    def kept(self) -> bool:
        """Whether it may still be read at its position."""
        return self is Outcome.STORED


@dataclass(frozen=True, slots=True)
class Turn:
    """What a consolidator hands over: an entry with its position, or bytes that are none.

    >>> Turn("s1", "e1", 1, 1, b"", entry=None, problem="not an entry").problem
    'not an entry'
    """

    session: str
    event_id: str
    epoch: int
    seq: int
    payload: bytes
    entry: LogEntry | None
    problem: str = ""
    """Why it is to be put among the dead letters without trying."""


@dataclass(frozen=True, slots=True)
class Flushed:
    """What became of a batch.

    >>> Flushed([Outcome.STORED]).behind
    {}
    """

    outcomes: list[Outcome]
    behind: dict[str, int] = field(default_factory=dict)
    """Sessions in which the hot log is behind, and the epoch to advance it to."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the durable log has of an entry that left the hot log; no outcome if it has nothing.

    >>> Found(None).stored is None
    True
    """

    outcome: Outcome | None
    stored: PositionedEntry | None = None
    """The entry as it is stored."""

    other: bool = False
    """Another event is stored under its id."""

    rested: bool = False
    """The session was released by the hot log since, with everything flushed."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a clear removed from the durable log.

    >>> Cleared({"e1": (1, 1)}, until=(1, 4)).until
    (1, 4)
    """

    ids: dict[str, tuple[int, int]]
    """With their positions."""

    until: tuple[int, int] | None
    """Up to which position the clear goes."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An entry that could not be stored, byte for byte, and why.

    >>> from datetime import UTC
    >>> DeadLetter("d1", "s1", "e1", 1, 7, b"x", "22P02", datetime(2030, 1, 1, tzinfo=UTC)).seq
    7
    """

    id: str
    session: str
    event_id: str
    epoch: int
    seq: int
    payload: bytes
    reason: str
    failed_at: datetime


class ShardFlush(Protocol):
    """One transaction that holds a shard: nobody else flushes it until it has ended."""

    @abstractmethod
    async def store(self, turns: Sequence[Turn]) -> Flushed:
        """Store a batch; what cannot be stored goes among the dead letters in the same step."""


class DurableLog(Protocol):
    """The durable log of one tenant."""

    @abstractmethod
    async def load(self, session: str, agent: str | None, known: Known | None) -> Grant | None:
        """Grant the numbering of a session to the hot log; ``agent`` creates it on first use.

        ``known`` is what the hot log knows. If the session was granted before and the hot log does
        not know that grant, the numbers reserved for it are recorded as a gap, until all processes
        that may have used them have settled it. A new grant has no numbers, so nothing is lost if
        it never reaches the hot log. Returns ``None`` for an unknown session without an agent.
        """

    @abstractmethod
    async def reserve(self, session: str, *, grant_version: int, writer: str) -> Reserved | None:
        """Reserve numbers for a grant of the hot log; ``None`` if there is a newer grant.

        ``writer`` is the process that will acknowledge events before they are stored, if any.
        """

    @abstractmethod
    async def settle(self, session: str, writer: str) -> tuple[Gap, ...]:
        """A process misses nothing of what it acknowledged in a session; the gaps that are left."""

    @abstractmethod
    async def agent_gaps(self, agent: str) -> tuple[Gap, ...]:
        """The gaps of all sessions that an agent started."""

    @abstractmethod
    async def hot_sessions(self, agent: str, *, limit: int) -> dict[str, int]:
        """The sessions of an agent that are loaded in the hot log, with their grant versions."""

    @abstractmethod
    async def append(self, entries: Sequence[LogEntry]) -> list[PositionedEntry]:
        """Append past the hot log, all or none; takes the numbering back where it was granted.

        Returns the entries as they are stored, in the same order.
        """

    @abstractmethod
    async def reached(self, session: str) -> tuple[tuple[int, int] | None, tuple[Gap, ...]]:
        """Up to which position a session is stored, ``None`` if it was never numbered; its gaps."""

    @abstractmethod
    async def find(self, entries: Sequence[PositionedEntry]) -> list[Found]:
        """What became of entries, in their order, by id and position."""

    @abstractmethod
    async def tail(self, session: str, limit: int) -> list[PositionedEntry]:
        """The newest entries of a session, ascending, whoever wrote them."""

    @abstractmethod
    async def clear(
        self,
        session: str,
        *,
        agent: str | None,
        run: str | None,
        types: list[str] | None,
        until: tuple[int, int] | None,
    ) -> Cleared:
        """Remove what matches up to a position, and leave a tombstone for what is still on its way.

        Without ``until`` nothing is on its way. What was stored meanwhile is removed as well.
        """

    @abstractmethod
    async def count_messages(self, session: str, agent: str, *, besides: Sequence[str]) -> int:
        """How many messages an agent has in a session, those with the given ids left out."""

    @abstractmethod
    async def check_dimension(self, dimension: int) -> None:
        """Refuse vectors that are not of the log's dimension."""

    @abstractmethod
    async def keep_vectors(
        self, entries: Sequence[LogEntry], vectors: Sequence[Sequence[float]]
    ) -> None:
        """Keep the vectors of stored events."""


class DurableQueue(Protocol):
    """The durable log of all tenants, as consolidators and operators see it."""

    @abstractmethod
    def flushing(self, tenant: str, shard: int) -> AbstractAsyncContextManager[ShardFlush | None]:
        """Hold a shard, commit at the end; ``None`` when somebody else holds it."""

    @abstractmethod
    async def unload(self, tenant: str, session: str, *, grant_version: int) -> bool:
        """Revoke the grant of an idle session, unless there is a newer one. Returns whether."""

    @abstractmethod
    async def behind(self, *, limit: int) -> list[tuple[str, str, int]]:
        """Sessions in which the hot log is behind the durable one: tenant, session, epoch.

        The process that appended to the durable log may have died before it advanced the hot log.
        """

    @abstractmethod
    async def unsettled(self, writer: str) -> list[tuple[str, str]]:
        """Tenants and sessions of which a process may have lost something with the hot log."""

    @abstractmethod
    async def release(self, writer: str) -> None:
        """A process ends, and all that it acknowledged is stored."""

    @abstractmethod
    async def dead_letters(self, tenant: str, *, limit: int, after: str = "") -> list[DeadLetter]:
        """What could not be stored, oldest first."""

    @abstractmethod
    async def get_dead_letter(self, tenant: str, id: str) -> DeadLetter | None:
        """One of them."""

    @abstractmethod
    async def replay(self, tenant: str, letter: DeadLetter, entry: LogEntry) -> tuple[int, int]:
        """Store an entry after all, at its position if that is free; where it stands."""

    @abstractmethod
    async def discard(self, tenant: str, id: str) -> bool:
        """Give one up; whether it was there."""
