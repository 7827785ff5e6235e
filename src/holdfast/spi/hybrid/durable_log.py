"""The durable log (Postgres): number grants, flushes, tombstones, gaps, dead letters.

Events are first in the hot log (Redis), and consolidators flush them to the durable log.
``DurableLog`` is for writers and readers of one tenant, ``DurableQueue`` for consolidators and
operators.
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
from holdfast.spi.transcripts import Tail
from holdfast.values.wakes import Gap


@dataclass(frozen=True, slots=True)
class Known:
    """The last position that the hot log assigned in a session, and the version of its grant.

    >>> Known(epoch=1, seq=40, grant_version=2).grant_version
    2
    """

    epoch: int
    seq: int
    grant_version: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """The highest number of a grant, and the processes that may acknowledge unstored events.

    >>> Reserved(1000, ("w1",)).limit
    1000
    """

    limit: int
    writers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """The right of the hot log to number the events of a session: after ``seq``, up to ``limit``.

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
    """The outcome of an entry in a flush.

    >>> Outcome("stored").kept
    True
    """

    STORED = "stored"
    """The entry is in the log, from this flush or an earlier one."""
    COVERED = "covered"
    """The entry was cleared before it was stored."""
    KNOWN = "known"
    """The entry's id is in the log already, at another position."""
    DEAD = "dead"
    """The entry cannot be stored as it is, and is a dead letter."""

    @property
    def kept(self) -> bool:
        """Whether the entry may still be read at its position."""
        return self is Outcome.STORED


@dataclass(frozen=True, slots=True)
class Turn:
    """What a consolidator flushes: an entry with its position, or bytes that are not an entry.

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
    """Why it becomes a dead letter without an attempt to store it; empty if it is to be stored."""
    awaited: bool = False
    """Whether its writer acknowledges it only once it is stored. If its epoch is over, it is stored
    at the end of its session, behind what was acknowledged meanwhile."""


@dataclass(frozen=True, slots=True)
class Flushed:
    """The outcomes of a batch.

    >>> Flushed([Outcome.STORED]).behind
    {}
    """

    outcomes: list[Outcome]
    behind: dict[str, int] = field(default_factory=dict)
    """Sessions in which the hot log is behind the durable one, and the epoch to advance it to."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the durable log has of an entry that is not in the hot log; ``outcome=None``: nothing.

    >>> Found(None).stored is None
    True
    """

    outcome: Outcome | None
    stored: PositionedEntry | None = None
    """The entry as it is stored."""

    other: bool = False
    """Whether another event is stored under its id."""

    rested: bool = False
    """Whether the session was unloaded from the hot log since, with everything flushed."""

    over: bool = False
    """Whether the session is in a later epoch than the entry."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a clear removed from the durable log.

    >>> Cleared({"e1": (1, 1)}, until=(1, 4)).until
    (1, 4)
    """

    ids: dict[str, tuple[int, int]]
    """The ids of the removed events, with their positions."""

    until: tuple[int, int] | None
    """The last position that the clear covers."""


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
    """One transaction that locks a shard: no other process flushes the shard until it ends."""

    @abstractmethod
    async def store(self, turns: Sequence[Turn]) -> Flushed:
        """Store a batch. Entries that cannot be stored become dead letters in the transaction."""


class DurableLog(Protocol):
    """The durable log of one tenant."""

    @abstractmethod
    async def load(self, session: str, agent: str | None, known: Known | None) -> Grant | None:
        """Grant a session's numbering to the hot log; with ``agent``, create a missing session.

        ``known`` is what the hot log knows. If the session was granted before and the hot log does
        not know that grant, the numbers reserved for it are recorded as a gap, until each process
        that may have used them has called ``settle``. A new grant has no numbers, so nothing is
        lost if it never reaches the hot log. Returns ``None`` for an unknown session without an
        agent.
        """

    @abstractmethod
    async def reserve(self, session: str, *, grant_version: int, writer: str) -> Reserved | None:
        """Reserve numbers for a grant of the hot log; ``None`` if there is a newer grant.

        ``writer`` is the process that will acknowledge events before they are stored, if any.
        """

    @abstractmethod
    async def settle(self, session: str, writer: str) -> tuple[Gap, ...]:
        """Record that no event of this process is lost in a session. Returns the remaining gaps."""

    @abstractmethod
    async def agent_gaps(self, agent: str) -> tuple[Gap, ...]:
        """Return the gaps of all sessions that an agent started."""

    @abstractmethod
    async def hot_sessions(self, agent: str, *, limit: int) -> dict[str, int]:
        """Return an agent's sessions that are loaded in the hot log, with their grant versions."""

    @abstractmethod
    async def append(self, entries: Sequence[LogEntry]) -> list[PositionedEntry]:
        """Append without the hot log, all or none. Revokes the grants of the entries' sessions.

        Returns the entries as they are stored, in the same order.
        """

    @abstractmethod
    async def reached(self, session: str) -> tuple[tuple[int, int] | None, tuple[Gap, ...]]:
        """Return the last stored position of a session, ``None`` if it has none, and its gaps."""

    @abstractmethod
    async def find(self, entries: Sequence[PositionedEntry]) -> list[Found]:
        """Look up entries by id and position. Returns one ``Found`` per entry, in order."""

    @abstractmethod
    async def tail(self, session: str, limit: int) -> list[PositionedEntry]:
        """Return the newest entries of a session, of all agents, ascending."""

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
        """Delete matching entries up to a position, and write a tombstone for the unflushed ones.

        ``until=None`` says that no entries are unflushed. Entries that were stored meanwhile are
        deleted too.
        """

    @abstractmethod
    async def pop(self, session: str, agent: str) -> PositionedEntry | None:
        """Remove the newest message of an agent, and return it; ``None`` if there is none.

        A tombstone prevents that a process which still has the message writes it again.
        """

    @abstractmethod
    async def replace_tail(
        self, session: str, agent: str, tail: Tail
    ) -> tuple[int, dict[str, tuple[int, int]]]:
        """Replace messages as ``Transcripts.replace_tail`` does, without the hot log.

        Returns the newest number, and the ids of the removed messages with their positions.
        """

    @abstractmethod
    async def delete_session(self, session: str) -> dict[str, tuple[int, int]] | None:
        """Delete a session as ``EpisodeStorage.delete_session`` does, without the hot log.

        Returns the ids of its events with their positions; ``None`` if there is no such session. A
        tombstone keeps its events from being written again.
        """

    @abstractmethod
    async def delete_events(self, session: str, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Delete events as ``EpisodeStorage.delete_events`` does, without the hot log.

        Returns the ids of those that were there, with their positions. Tombstones keep them from
        being written again.
        """

    @abstractmethod
    async def count_messages(self, session: str, agent: str, *, besides: Sequence[str]) -> int:
        """Return how many messages an agent has in a session, except the ids in ``besides``."""

    @abstractmethod
    async def check_dimension(self, dimension: int) -> None:
        """Raise an error if the vectors of the log have another dimension."""

    @abstractmethod
    async def keep_vectors(
        self, entries: Sequence[LogEntry], vectors: Sequence[Sequence[float]]
    ) -> None:
        """Store the vectors of stored events."""


class DurableQueue(Protocol):
    """The durable log of all tenants, for consolidators and operators."""

    @abstractmethod
    def flushing(self, tenant: str, shard: int) -> AbstractAsyncContextManager[ShardFlush | None]:
        """Lock a shard, and commit at the end; ``None`` if another process holds the lock."""

    @abstractmethod
    async def unload(self, tenant: str, session: str, *, grant_version: int) -> bool:
        """Revoke the grant of an idle session. Returns ``False`` if there is a newer one."""

    @abstractmethod
    async def behind(self, *, limit: int) -> list[tuple[str, str, int]]:
        """Return sessions in which the hot log is behind the durable one: tenant, session, epoch.

        The process that appended to the durable log may have died before it advanced the hot log.
        """

    @abstractmethod
    async def unsettled(self, writer: str) -> list[tuple[str, str]]:
        """Return tenants and sessions in which the hot log may have lost events of a process."""

    @abstractmethod
    async def release(self, writer: str) -> None:
        """Unregister a process that ends; all events that it acknowledged are stored."""

    @abstractmethod
    async def dead_letters(self, tenant: str, *, limit: int, after: str = "") -> list[DeadLetter]:
        """Return dead letters, oldest first."""

    @abstractmethod
    async def get_dead_letter(self, tenant: str, id: str) -> DeadLetter | None:
        """Return a dead letter, or ``None``."""

    @abstractmethod
    async def replay(self, tenant: str, letter: DeadLetter, entry: LogEntry) -> tuple[int, int]:
        """Store a dead letter's entry, at its position if that is free. Returns its position."""

    @abstractmethod
    async def discard(self, tenant: str, id: str) -> bool:
        """Delete a dead letter. Returns whether it was there."""
