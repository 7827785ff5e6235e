"""The turn log: what was acknowledged fast and must still reach the durable store.

Producers append, consolidators claim in batches, write durably, and acknowledge.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from holdfast.kernel.core.checks import check_count, check_id, check_list, check_seconds
from holdfast.kernel.core.errors import InvalidInputError

SEEN_SECONDS = 3600
"""How long, at the least, an event id is known after its entry was acknowledged."""


@dataclass(frozen=True, slots=True)
class TurnEntry:
    """What a producer appends: an event that it has encoded, under the id that it has minted.

    >>> TurnEntry("e1", "s1", b"{}").session_id
    's1'
    """

    event_id: str
    session_id: str
    payload: bytes


@dataclass(frozen=True, slots=True, order=True)
class LogPosition:
    """A place in the log of one session; places are ordered, epoch first.

    >>> LogPosition(1, 9) < LogPosition(2, 1)
    True
    """

    epoch: int
    seq: int


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """An entry in the hands of a consumer.

    >>> from datetime import UTC
    >>> entry, when = TurnEntry("e1", "s1", b"{}"), datetime(2030, 1, 1, tzinfo=UTC)
    >>> ClaimedTurn("7", entry, LogPosition(1, 1), when, deliveries=1).id
    '7'
    """

    id: str
    """What ``acknowledge`` takes."""

    entry: TurnEntry
    position: LogPosition
    appended_at: datetime
    deliveries: int
    """How often the entry was claimed: a high number is an entry that kills its consumers."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much is not acknowledged yet, and for how long.

    >>> Backlog(unclaimed=2, claimed=1, oldest_age_seconds=0.5).total
    3
    """

    unclaimed: int
    claimed: int
    oldest_age_seconds: float
    """The age of the oldest entry; 0 when there is none."""

    @property
    def total(self) -> int:
        """All entries, claimed or not."""
        return self.unclaimed + self.claimed


@runtime_checkable
class TurnLog(Protocol):
    """An append-only log with consumers, each entry of which is kept until it is acknowledged.

    Identity is the event id within its session: a producer that does not know whether its append
    arrived appends again with the same id. The log numbers the entries of a session, and only the
    numbers order them. A consumer that dies leaves its entries claimed; another takes them over
    when they have been idle long enough, so every entry is delivered at least once.

    Promises:

    - an entry comes back as it was appended
    - the numbers of a session start at 1 and have no gaps
    - each session has its own numbers
    - append is idempotent by event id
    - many who append the same event at once make one entry
    - the same event id with another payload is a conflict
    - the same event id in another session is another entry
    - equal payloads under different event ids stay two
    - entries appended at once all survive without gaps
    - append_many is all or nothing
    - the entries of an append_many follow each other
    - append_many of what is partly there appends the rest
    - append_many of nothing does nothing
    - append_many of two sessions is refused
    - an event id is known for an hour after its entry was acknowledged
    - numbers go on after everything was acknowledged
    - claim hands out entries in the order of the log
    - claim of an empty log is an empty list
    - claim takes at most limit
    - a limit of zero is an empty result and a negative one is refused
    - an entry is claimed by one consumer at a time
    - what was not acknowledged is claimed again after min_idle_seconds
    - what a dead consumer left comes before what is new
    - a min_idle_seconds of zero takes over at once
    - a negative min_idle_seconds is refused
    - each claim counts one more delivery
    - acknowledge removes entries and counts them
    - acknowledge is idempotent
    - a late acknowledgement of an entry that was taken over still counts
    - nothing expires before it is acknowledged
    - pending counts what is claimed and what is not
    - pending tells the age of the oldest entry
    - advance raises the place after which a session goes on
    - advance never lowers a place
    - a payload is any bytes and nothing else
    - an id that is not an id is refused and nothing is written
    - one tenant never sees another's entries
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - entries, claims and numbers are still there after a reopen
    """

    @abstractmethod
    async def append(self, entry: TurnEntry) -> LogPosition:
        """Append one entry; the place it has, or has had since it was first appended.

        ::

            place = await log.append(TurnEntry(event.id, event.session_id, encoded))
        """
        ...

    @abstractmethod
    async def append_many(self, entries: Sequence[TurnEntry]) -> list[LogPosition]:
        """Append entries of one session in one step; their places in the same order.

        ::

            places = await log.append_many([first, second])
        """
        ...

    @abstractmethod
    async def claim(
        self, consumer: str, *, limit: int = 500, min_idle_seconds: float = 60
    ) -> list[ClaimedTurn]:
        """A batch for one consumer: first what others left idle, then what nobody has claimed.

        ::

            batch = await log.claim("worker-1")
        """
        ...

    @abstractmethod
    async def acknowledge(self, ids: Sequence[str]) -> int:
        """Drop claimed entries, after they are durable elsewhere; how many there were.

        ::

            await log.acknowledge([turn.id for turn in batch])
        """
        ...

    @abstractmethod
    async def pending(self) -> Backlog:
        """How far the consumers are behind.

        ::

            lag = (await log.pending()).oldest_age_seconds
        """
        ...

    @abstractmethod
    async def advance(self, session_id: str, position: LogPosition) -> LogPosition:
        """Let a session go on after ``position`` if that is ahead; the place it goes on after.

        For when another store has numbered entries in the meantime, or this one has lost some.

        ::

            await log.advance("s1", LogPosition(epoch=2, seq=40))
        """
        ...


def check_entries(entries: object) -> list[TurnEntry]:
    """Entries of one session, each with ids and bytes.

    >>> check_entries([TurnEntry("e1", "s1", b"{}")])[0].event_id
    'e1'
    """
    checked = [
        check_entry(entry, field=f"entries[{at}]")
        for at, entry in enumerate(check_list("entries", entries))
    ]
    if len({entry.session_id for entry in checked}) > 1:
        raise InvalidInputError("entries", "must be of one session: append each session's apart")
    return checked


def check_entry(entry: object, *, field: str = "entry") -> TurnEntry:
    """An entry with ids and bytes.

    >>> check_entry(TurnEntry("e1", "s1", b"{}")).event_id
    'e1'
    """
    if not isinstance(entry, TurnEntry):
        raise InvalidInputError(field, f"must be a TurnEntry, not {type(entry).__name__}")
    check_id(f"{field}.event_id", entry.event_id)
    check_id(f"{field}.session_id", entry.session_id)
    if not isinstance(entry.payload, bytes):
        raise InvalidInputError(
            f"{field}.payload", f"must be bytes, not {type(entry.payload).__name__}"
        )
    return entry


def check_position(position: object) -> LogPosition:
    """A place with numbers that every engine can hold.

    >>> check_position(LogPosition(1, 9)).seq
    9
    """
    if not isinstance(position, LogPosition):
        raise InvalidInputError("position", f"must be a LogPosition, not {type(position).__name__}")
    check_count("position.epoch", position.epoch)
    check_count("position.seq", position.seq)
    return position


def check_idle(value: object) -> float:
    """How long an entry must be idle before it is taken over: 0 or a span of time.

    >>> check_idle(0)
    0.0
    """
    if value == 0 and not isinstance(value, bool):
        return 0.0
    return check_seconds("min_idle_seconds", value)
