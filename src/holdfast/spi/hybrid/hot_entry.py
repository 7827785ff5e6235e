"""An event in the hot log: its bytes and its position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Self

from holdfast.spi.log_entry import LogEntry
from holdfast.values.checks import check_id, check_optional_id, check_time
from holdfast.values.codec import decode_json
from holdfast.values.errors import CodecError, InvalidInputError
from holdfast.values.events import Event

BEGINNING = (0, 0)
"""The position before the first event of every session."""


@dataclass(frozen=True, slots=True)
class PositionedEntry:
    """An entry of a session's log, its position, and its id in a stream of the hot log.

    >>> from datetime import UTC
    >>> entry = LogEntry("a1", "s1", "note", "{}", "e1", "", datetime(2030, 1, 1, tzinfo=UTC))
    >>> PositionedEntry(entry, 1, 7).position
    (1, 7)
    """

    entry: LogEntry
    epoch: int
    seq: int
    mark: str = ""
    """Its id in the shard's stream; empty if it was read from the durable log."""

    @property
    def position(self) -> tuple[int, int]:
        """Its position (epoch, seq), by which a session is ordered."""
        return self.epoch, self.seq

    @classmethod
    def of(cls, entry: LogEntry, epoch: int, seq: int, first: datetime | None) -> Self:
        """Return an entry as it is stored; ``first`` is the time that an earlier append gave it.

        >>> entry = LogEntry("a1", "s1", "note", "{}", "e1", "", datetime(2030, 1, 2))
        >>> PositionedEntry.of(entry, 1, 7, datetime(2030, 1, 1)).entry.occurred_at.day
        1
        """
        return cls(entry if first is None else replace(entry, occurred_at=first), epoch, seq)

    def to_event(self) -> Event:
        """Return a new event, which the caller owns."""
        return self.entry.to_event(self.epoch, self.seq)


def pack(entry: LogEntry) -> bytes:
    r"""Return an entry as bytes: five lines and the body, none of which can contain a line break.

    >>> from datetime import UTC
    >>> pack(LogEntry("a1", "s1", "note", "{}", "e1", "", datetime(2030, 1, 1, tzinfo=UTC)))
    b'a1\nnote\n\n2030-01-01T00:00:00+00:00\ne1\n{}'
    """
    when = entry.occurred_at.isoformat()
    return f"{entry.agent}\n{entry.type}\n{entry.run}\n{when}\n{entry.id}\n{entry.body}".encode()


def unpack(session: str, payload: bytes) -> LogEntry:
    r"""Return the entry that ``pack`` encoded. Raises ``CodecError`` for anything else.

    >>> unpack("s1", b'a1\nnote\n\n2030-01-01T00:00:00+00:00\ne1\n{}').id
    'e1'
    """
    try:
        agent, type_, run, when, id_, body = payload.decode().split("\n", 5)
        return LogEntry(agent, session, type_, body, id_, run, datetime.fromisoformat(when))
    except ValueError as error:
        raise CodecError(f"an entry of session {session!r} cannot be read: {error}") from error


def check_entry(entry: LogEntry) -> LogEntry:
    """Raise an error for an entry that no append would have accepted: its bytes were damaged.

    >>> from datetime import UTC
    >>> when = datetime(2030, 1, 1, tzinfo=UTC)
    >>> check_entry(LogEntry("a1", "s1", "note", "{}", "e1", "", when)).id
    'e1'
    """
    try:
        for field in ("agent", "session", "type", "id"):
            check_id(field, getattr(entry, field))
        check_optional_id("run", entry.run)
        check_time("occurred_at", entry.occurred_at)
        decode_json(entry.body)
    except (InvalidInputError, CodecError) as error:
        raise CodecError(f"an entry of session {entry.session!r} is damaged: {error}") from error
    return entry


def digest(entry: LogEntry) -> str:
    """Return a digest of an event's content. The time is not part of it.

    >>> entry = LogEntry("a1", "s1", "note", "{}", "e1", "", datetime(2030, 1, 1))
    >>> digest(entry) == digest(replace(entry, occurred_at=datetime(2030, 1, 2)))
    True
    >>> digest(entry) == digest(replace(entry, run="r1"))
    False
    """
    return _short("\n".join(entry.content()).encode())


def digest_with_time(entry: LogEntry) -> str:
    """Return the digest that earlier versions stored in Redis: the time is part of it.

    >>> entry = LogEntry("a1", "s1", "note", "{}", "e1", "", datetime(2030, 1, 1))
    >>> later = replace(entry, occurred_at=datetime(2030, 1, 2))
    >>> digest_with_time(entry) == digest_with_time(later)
    False
    """
    return _short(pack(entry))


def _short(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]
