"""The turn log, in process."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_count, check_id, check_ids
from holdfast.kernel.core.errors import ConflictError
from holdfast.kernel.storage.turnlog import (
    SEEN_SECONDS,
    Backlog,
    ClaimedTurn,
    LogPosition,
    TurnEntry,
    TurnLog,
    check_entries,
    check_entry,
    check_idle,
    check_position,
)

_START = LogPosition(1, 0)


@dataclass
class _Entry:
    number: int
    entry: TurnEntry
    position: LogPosition
    appended_at: datetime
    claimed_at: datetime | None = None
    deliveries: int = 0


@dataclass
class _Data:
    """Entries by their number; every claimed one is older than every unclaimed one."""

    last: int = 0
    unclaimed: dict[int, _Entry] = field(default_factory=dict)
    claimed: dict[int, _Entry] = field(default_factory=dict)
    positions: dict[str, LogPosition] = field(default_factory=dict)
    seen: dict[tuple[str, str], tuple[bytes, LogPosition]] = field(default_factory=dict)
    forgettable: deque[tuple[datetime, tuple[str, str]]] = field(default_factory=deque)


class InMemoryTurnLog(TurnLog):
    """``TurnLog`` in dicts that keep the order of the log.

    >>> log = InMemoryTurnLog(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def append(self, entry: TurnEntry) -> LogPosition:
        """Append one entry."""
        return self._append([check_entry(entry)])[0]

    async def append_many(self, entries: Sequence[TurnEntry]) -> list[LogPosition]:
        """Append entries of one session in one step."""
        return self._append(check_entries(entries))

    def _append(self, entries: list[TurnEntry]) -> list[LogPosition]:
        now = self._engine.now()
        self._forget(now)
        digests: dict[tuple[str, str], bytes] = {}
        for entry in entries:
            digest = hashlib.sha256(entry.payload).digest()
            earlier = self._data.seen.get(_key(entry), (digest,))[0]
            if {digests.setdefault(_key(entry), digest), earlier} != {digest}:
                raise ConflictError(
                    "event", entry.event_id, f"the id {entry.event_id!r} is another event's"
                )
        for entry in entries:
            if _key(entry) not in self._data.seen:
                self._data.seen[_key(entry)] = digests[_key(entry)], self._add(entry, now)
        return [self._data.seen[_key(entry)][1] for entry in entries]

    def _add(self, entry: TurnEntry, now: datetime) -> LogPosition:
        before = self._data.positions.get(entry.session_id, _START)
        position = LogPosition(before.epoch, before.seq + 1)
        self._data.positions[entry.session_id] = position
        self._data.last += 1
        self._data.unclaimed[self._data.last] = _Entry(self._data.last, entry, position, now)
        return position

    def _forget(self, now: datetime) -> None:
        while self._data.forgettable and self._data.forgettable[0][0] <= now:
            _, key = self._data.forgettable.popleft()
            del self._data.seen[key]

    async def claim(
        self, consumer: str, *, limit: int = 500, min_idle_seconds: float = 60
    ) -> list[ClaimedTurn]:
        """A batch for one consumer."""
        check_id("consumer", consumer)
        check_count("limit", limit)
        now = self._engine.now()
        idle_since = now - timedelta(seconds=check_idle(min_idle_seconds))
        idle = [
            entry
            for _, entry in sorted(self._data.claimed.items())
            if entry.claimed_at and entry.claimed_at <= idle_since
        ][:limit]
        fresh = list(islice(self._data.unclaimed.values(), limit - len(idle)))
        for entry in fresh:
            self._data.claimed[entry.number] = self._data.unclaimed.pop(entry.number)
        for entry in idle + fresh:
            entry.claimed_at = now
            entry.deliveries += 1
        return [_view(entry) for entry in idle + fresh]

    async def acknowledge(self, ids: Sequence[str]) -> int:
        """Drop claimed entries."""
        wanted = set(check_ids("ids", ids))
        forget_at = self._engine.now() + timedelta(seconds=SEEN_SECONDS)
        done = [number for number in self._data.claimed if str(number) in wanted]
        for number in done:
            entry = self._data.claimed.pop(number).entry
            self._data.forgettable.append((forget_at, _key(entry)))
        return len(done)

    async def pending(self) -> Backlog:
        """How far the consumers are behind."""
        unclaimed, claimed = self._data.unclaimed, self._data.claimed
        oldest = claimed[min(claimed)] if claimed else next(iter(unclaimed.values()), None)
        age = self._engine.now() - oldest.appended_at if oldest else timedelta()
        return Backlog(len(unclaimed), len(claimed), age.total_seconds())

    async def advance(self, session_id: str, position: LogPosition) -> LogPosition:
        """Let a session go on after a place."""
        check_id("session_id", session_id)
        check_position(position)
        ahead = max(position, self._data.positions.get(session_id, _START))
        self._data.positions[session_id] = ahead
        return ahead


def _key(entry: TurnEntry) -> tuple[str, str]:
    return entry.session_id, entry.event_id


def _view(entry: _Entry) -> ClaimedTurn:
    return ClaimedTurn(
        str(entry.number), entry.entry, entry.position, entry.appended_at, entry.deliveries
    )
