"""The writes to the hot stores that this process acknowledged and that are not durable yet.

While the hot store is down, reads include them. If the hot store loses them, this process writes
them to the durable store. Their memory is bounded: above the bound a write waits for its commit.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.hybrid.hot_log import Window
from holdfast.spi.hybrid.state_snapshots import FallbackWrite, Written
from holdfast.values.states import StateWrite

MOST = 50_000
"""How many events, and how many written states, a process remembers for one tenant."""

MOST_BYTES = 64 << 20
"""How many bytes of events, and of states, it remembers."""

LOOK_EVERY = 1000
"""After this many writes the process looks up which of them others have made durable."""


class Unflushed:
    """The events of one tenant that this process acknowledged and has not seen flushed.

    ::

        if not unflushed.add(positioned):
            await commit(positioned)
    """

    def __init__(self, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._sessions: dict[str, dict[str, PositionedEntry]] = {}
        self._count = 0
        self._bytes = 0
        self._added = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[PositionedEntry]:
        for entries in self._sessions.values():
            yield from entries.values()

    @property
    def due(self) -> bool:
        """Whether enough writes were made to look up what other processes have flushed."""
        return self._added >= LOOK_EVERY

    def looked(self) -> None:
        """Restart the count of writes until the next lookup."""
        self._added = 0

    def add(self, entries: Sequence[PositionedEntry]) -> bool:
        """Remember entries. Returns ``False``, and remembers none, if there is no room."""
        size = sum(map(_size, entries))
        if self._count + len(entries) > self._most or self._bytes + size > self._most_bytes:
            return False
        for one in entries:
            mine = self._sessions.setdefault(one.entry.session, {})
            if one.entry.id not in mine:
                self._count += 1
                self._bytes += _size(one)
            mine[one.entry.id] = one
        self._added += len(entries)
        return True

    def of(self, session: str) -> list[PositionedEntry]:
        """Return the remembered entries of a session, in log order."""
        return sorted(self._sessions.get(session, {}).values(), key=lambda one: one.position)

    def forget(self, names: Iterable[tuple[str, str]]) -> None:
        """Forget events, by session and id, that are durable or deleted."""
        for session, id_ in names:
            mine = self._sessions.get(session)
            one = None if mine is None else mine.pop(id_, None)
            if mine is not None and one is not None:
                self._count -= 1
                self._bytes -= _size(one)
                if not mine:
                    del self._sessions[session]

    def suspects(self, session: str, window: Window) -> bool:
        """Return whether the window lacks an entry of this process that it should have."""
        mine = self._sessions.get(session)
        if not mine:
            return False
        here = {one.entry.id for one in window.entries}
        self.forget([(session, id_) for id_ in here - window.unflushed])
        lowest = window.floor
        if window.cut and window.entries:
            lowest = max(lowest, window.entries[0].position)
        return any(
            id_ not in here and (not window.hot or one.position > lowest)
            for id_, one in mine.items()
        )


class Unsaved:
    """The writes to states of one tenant that this process acknowledged and has not seen saved.

    ::

        if not unsaved.add(write, written):
            await commit(write)
    """

    def __init__(self, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._states: dict[str, tuple[StateWrite, Written, float, int]] = {}
        self._bytes = 0
        self._added = 0

    def __bool__(self) -> bool:
        return bool(self._states)

    @property
    def due(self) -> bool:
        """Whether enough writes were made to look up what other processes have saved."""
        return self._added >= LOOK_EVERY

    def looked(self) -> list[str]:
        """Restart the count of writes until the next lookup. Returns the sessions to look up."""
        self._added = 0
        return list(self._states)

    def add(self, write: StateWrite, written: Written) -> bool:
        """Remember a write, merged with the earlier ones. Returns ``False`` if there is no room."""
        before = self._states.get(write.session)
        whole = write if before is None else _together(before[0], write)
        size = _weight(whole) - (0 if before is None else before[3])
        if self._bytes + size > self._most_bytes:
            return False
        if before is None and len(self._states) >= self._most:
            return False
        weight = size if before is None else before[3] + size
        self._states[write.session] = (whole, written, time.time(), weight)
        self._bytes += size
        self._added += 1
        return True

    def get(self, session: str) -> tuple[FallbackWrite, Written] | None:
        """Return the merged writes to a state, and its newest version."""
        found = self._states.get(session)
        if found is None:
            return None
        write, written, when, _ = found
        at, now = datetime.fromtimestamp(when, UTC), datetime.now(UTC)
        return FallbackWrite(write, written.version, cleared=False, written_at=at, now=now), written

    def forget(self, session: str, *, version: int | None = None) -> None:
        """Forget the writes to a state up to a version, or all. They are saved or deleted."""
        found = self._states.get(session)
        if found is not None and (version is None or found[1].version <= version):
            self._bytes -= found[3]
            del self._states[session]


def _together(first: StateWrite, then: StateWrite) -> StateWrite:
    """Merge two writes to one state."""
    ttl = first.ttl_seconds if then.ttl_seconds is None else then.ttl_seconds
    if then.fresh:
        return dataclasses.replace(then, ttl_seconds=ttl)
    if not (first.dropped or then.dropped):
        return StateWrite(
            first.session, {**first.values, **then.values}, (), ttl, fresh=first.fresh
        )
    values = {key: text for key, text in first.values.items() if key not in then.dropped}
    dropped = {*first.dropped, *then.dropped}.difference(then.values)
    return StateWrite(
        first.session, {**values, **then.values}, tuple(dropped), ttl, fresh=first.fresh
    )


def _weight(write: StateWrite) -> int:
    return 500 + sum(len(key) + len(text) for key, text in write.values.items())


def _size(one: PositionedEntry) -> int:
    return 500 + len(one.entry.body)
