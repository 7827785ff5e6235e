"""The session log of one tenant, hot in one store and durable in another.

Only one log numbers a session's events at a time: the hot log while it holds a grant from the
durable log, the durable log otherwise. So no number is used twice, whichever store is lost.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from holdfast.engines.hybrid.backpressure import Backpressure
from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker, HotStoreDownError
from holdfast.engines.hybrid.consolidation import Consolidator
from holdfast.engines.hybrid.grants import Grants
from holdfast.engines.hybrid.horizon import Horizon
from holdfast.engines.hybrid.log_edits import LogEdits
from holdfast.engines.hybrid.waking import Waker
from holdfast.engines.hybrid.write_back import WriteBack, positioned
from holdfast.spi.hybrid.durable_log import DurableLog
from holdfast.spi.hybrid.hot_entry import BEGINNING, PositionedEntry
from holdfast.spi.hybrid.hot_log import Appended, Cold, HotLog, HotTurn, Window
from holdfast.spi.log_entry import LogEntry
from holdfast.values.errors import (
    BackPressureError,
    TimedOutError,
    UnavailableError,
)
from holdfast.values.failpoints import hit

_log = logging.getLogger("holdfast.hybrid")

_BEYOND = (1 << 62, 0)
"""A position above every other: with it, the window alone is never enough."""

AckLevel: TypeAlias = Literal["hot", "fsync", "committed"]


class HybridLog:
    """Appends, reads back and clears the sessions of one tenant.

    ``level`` sets when an append is acknowledged. While ``breaker`` reports the hot log as down,
    appends go to the durable log. ``behind`` maps the sessions in which the hot log is behind to
    their epoch in the durable log. ::

        log = HybridLog(hot, durable, consolidator, tenant="acme", level="committed")
    """

    def __init__(
        self,
        hot: HotLog,
        durable: DurableLog,
        consolidator: Consolidator,
        *,
        tenant: str,
        level: AckLevel,
        backpressure: Backpressure | None = None,
        breaker: CircuitBreaker | None = None,
        behind: dict[str, int] | None = None,
    ) -> None:
        self.hot = hot
        self.durable = durable
        self._consolidator = consolidator
        self._metrics = consolidator.metrics
        self._tenant = tenant
        self._level = level
        self._backpressure = backpressure
        self._breaker = breaker or CircuitBreaker()
        self._grants = Grants(
            hot,
            durable,
            tenant=tenant,
            breaker=self._breaker,
            metrics=self._metrics,
            behind=behind,
        )
        self._behind = self._grants.behind
        self._back = WriteBack(
            hot, durable, consolidator, self._grants, tenant=tenant, breaker=self._breaker
        )
        self._unflushed = self._back.unflushed
        self.edits = LogEdits(
            *(hot, durable, consolidator, self._grants, self._back),
            tenant=tenant,
            breaker=self._breaker,
        )
        self._grants.recover = self._back.recover
        self._grants.flush = self._back.drain
        self._seen = Horizon(self._metrics)
        self._waker = Waker(
            hot, durable, self._grants, self._back, breaker=self._breaker, seen=self._seen
        )
        self.wake = self._waker.wake
        self.wake_all = self._waker.wake_all

    async def append(
        self, entries: Sequence[LogEntry], *, commit: bool = False
    ) -> list[PositionedEntry]:
        """Append the new entries, all or none. Returns all entries as they are stored, in order.

        Event ids make this idempotent: after a lost answer the caller may retry. ``commit=True``
        waits until the entries are durable, whatever the level. ::

            stored = await log.append(entries)
        """
        crowded = False
        try:
            if self.hot.divided and len({self.hot.shard_of(one.session) for one in entries}) > 1:
                return await self.edits.append(entries)
            if self._backpressure is not None and not self._backpressure.calm:
                crowded = await self._admit(self._backpressure)
            settled = self._grants.settled
            answer = (
                None if self._behind else await self._breaker.call(lambda: self.hot.append(entries))
            )
            appended = answer if type(answer) is Appended else await self._append_hot(entries)
        except HotStoreDownError as error:
            return await self._append_fallback(entries, error)
        hit("append.after_hot")
        new = positioned(entries, appended)
        if commit or self._level == "committed":
            new = await self._back.committed(new, awaited=True)
            self._seen.reach(new)
            return new
        self._seen.reach(new)
        if crowded or appended.crowded or not self._unflushed.add(new):
            return await self._slow_down(new)
        if self._unflushed.due:
            await self._back.look()
        if settled != self._grants.settled:
            # The append was in flight while this process settled a session. It may be lost and not
            # recorded as a gap, so check for it now.
            for session in {one.entry.session for one in new}:
                await self._back.recover(session)
        return new

    async def commit(self, entries: Sequence[PositionedEntry]) -> None:
        """Flush entries of the hot log, for a reader that needs them in the durable log.

        ::

            await log.commit(await log.tail("writer/ana"))
        """
        await self._back.committed(entries)

    async def newest(
        self, session: str, count: int, chosen: Callable[[PositionedEntry], bool]
    ) -> tuple[bool, list[PositionedEntry]]:
        """Return whether the hot log has the newest chosen entries of a session, and these entries.

        If it does not, the second value is all chosen entries of the window, flushed and unflushed.
        ::

            enough, found = await log.newest("s1", 20, lambda one: one.entry.type == "message")
        """
        window = await self.window(session, last=count or None)
        enough, found = _newest(window, count, chosen)
        if window.cut and not enough:
            enough, found = _newest(await self.window(session), count, chosen)
        return enough, found

    async def window(self, session: str, *, last: int | None = None) -> Window:
        """Return a session's window in the hot log.

        While the hot log is down, it is the unflushed entries that this process wrote.

        ::

            window = await log.window("s1")
        """
        try:
            found = await self._breaker.call(lambda: self.hot.window(session, last=last))
            if self._unflushed and self._unflushed.suspects(session, found):
                await self._back.recover(session)
                found = await self._breaker.call(lambda: self.hot.window(session, last=last))
            if found.orphaned:
                found = await self._grants.load(session, None) or found
        except HotStoreDownError as error:
            late = await self._back.unseen(self._unflushed.of(session))
            self._seen.degraded(session, error)
            unflushed = frozenset(one.entry.id for one in late)
            return Window(floor=_BEYOND, entries=late, unflushed=unflushed)
        self._grants.compare_seen(session, found, self._seen.position(session))
        self._seen.reach(found.entries[-1:])
        if (
            found.hot
            and self._breaker.doubt
            and (why := await self._grants.compare(session, found))
        ):
            self._seen.degraded(session, HotStoreDownError(why, sure=True))
        if not found.hot or session in self._behind:
            # The durable log may have newer entries than the hot log.
            return dataclasses.replace(found, hot=False, floor=_BEYOND)
        return found

    async def tail(self, agent: str | None) -> list[PositionedEntry]:
        """Return the unflushed entries of one agent or all agents, in all sessions.

        ::

            unflushed = await log.tail("writer/ana")
        """
        mine = [one for one in self._unflushed if agent in {None, one.entry.agent}]
        try:
            found = await self._breaker.call(lambda: self.hot.tail(agent))
            here = {one.entry.key for one in found}
            for session in {one.entry.session for one in mine if one.entry.key not in here}:
                await self._back.recover(session)
        except HotStoreDownError as error:
            late = await self._back.unseen(mine)
            self._seen.degraded(f"all sessions of {agent or 'all agents'}", error)
            return sorted(late, key=lambda one: (one.entry.session, one.position))
        return found

    def forget(self, turns: Sequence[HotTurn]) -> None:
        """Forget turns that were flushed.

        ::

            log.forget(turns)
        """
        if self._unflushed:
            self._unflushed.forget((turn.session, turn.event_id) for turn in turns)

    async def clear(
        self,
        session: str,
        *,
        agent: str | None = None,
        run: str | None = None,
        types: list[str] | None = None,
    ) -> int:
        """Delete the matching entries. Returns how many.

        The tombstone is written first, so that no later flush restores them.

        ::

            removed = await log.clear("s1", run="r1")
        """

        def covered(one: PositionedEntry) -> bool:
            return (
                (agent is None or one.entry.agent == agent)
                and (run is None or one.entry.run == run)
                and (types is None or one.entry.type in types)
            )

        try:
            # A concurrent load of the session would write back the entries that it has read.
            async with self._grants.held(session, seconds=30):
                return await self._clear(session, covered, agent=agent, run=run, types=types)
        except HotStoreDownError as error:
            raise UnavailableError("redis", str(error)) from error

    async def _clear(
        self,
        session: str,
        covered: Callable[[PositionedEntry], bool],
        *,
        agent: str | None,
        run: str | None,
        types: list[str] | None,
    ) -> int:
        window = await self._breaker.call(lambda: self.hot.window(session))
        until = (window.known.epoch, window.known.seq) if window.known else None
        hit("clear.after_place")
        cleared = await self.durable.clear(session, agent=agent, run=run, types=types, until=until)
        hit("clear.after_durable")
        if cleared.until is not None and cleared.until != until:
            # More entries were flushed meanwhile and are deleted: read the window again.
            window = await self._breaker.call(lambda: self.hot.window(session))
        last = cleared.until or BEGINNING
        gone = [one for one in window.entries if covered(one) and one.position <= last]
        if gone or cleared.ids:
            await self._breaker.call(lambda: self.hot.forget(session, gone, cleared.ids))
        self._unflushed.forget((session, one.entry.id) for one in gone)
        fresh = {one.entry.id for one in gone if one.entry.id in window.unflushed}
        return len(fresh | set(cleared.ids))

    async def settle(self, session: str) -> None:
        """Record that nothing which this process acknowledged in a session is lost.

        ::

            await log.settle("s1")
        """
        await self._grants.settle(session)

    async def is_settled(self) -> bool:
        """Return whether all events that this process acknowledged are durable.

        ::

            if await log.is_settled(): ...
        """
        await self._back.look()
        return not self._unflushed

    async def advance_epoch(self, session: str, epoch: int) -> None:
        """Advance a session in the hot log to at least this epoch of the durable log.

        ::

            await log.advance_epoch("s1", 2)
        """
        await self._grants.load(session, None, epoch=epoch)

    async def _append_hot(self, batch: Sequence[LogEntry]) -> Appended:
        if self._behind:
            await self._grants.catch_up(entry.session for entry in batch)
        while True:
            answer = await self._breaker.call(lambda: self.hot.append(batch))
            if isinstance(answer, Appended):
                return answer
            if isinstance(answer, Cold):
                agent = next(one.agent for one in batch if one.session == answer.session)
                await self._grants.load(answer.session, agent)
            else:
                await self._grants.go_on(answer)

    async def _append_fallback(
        self, batch: Sequence[LogEntry], why: HotStoreDownError
    ) -> list[PositionedEntry]:
        """Append to the durable log while the hot log is down.

        The hot log is advanced to the new epoch before it numbers the session again.
        """
        try:
            stored = await self.durable.append(batch)
        except (UnavailableError, TimedOutError) as error:
            self._metrics.refused += 1
            raise BackPressureError(
                retry_after_seconds=1.0, message=f"neither store answers: {why}; {error}"
            ) from error
        hit("append.after_fallback")
        self._grants.mark_behind(stored)
        self._metrics.fallback_events += len(batch)
        _log.warning("%d events were appended to the durable log directly: %s", len(batch), why)
        return stored

    async def _admit(self, backpressure: Backpressure) -> bool:
        """Refuse the append at a hard limit. Returns whether a soft one is exceeded."""
        try:
            return await self._breaker.call(lambda: backpressure.check(self._tenant))
        except BackPressureError:
            self._metrics.refused += 1
            raise

    async def _slow_down(self, entries: list[PositionedEntry]) -> list[PositionedEntry]:
        """Wait for the commit. After a timeout, acknowledge the append without it, and log it."""
        try:
            return await self._back.committed(entries, limit_seconds=self._breaker.patience_seconds)
        except TimedOutError as error:
            _log.warning("the backlog is too large, and cannot be flushed: %s", error)
            return entries


def _newest(
    window: Window, count: int, chosen: Callable[[PositionedEntry], bool]
) -> tuple[bool, list[PositionedEntry]]:
    found = once(filter(chosen, window.entries))
    newest = found[len(found) - count :] if count < len(found) else found
    if len(newest) == count and (not newest or newest[0].position > window.floor):
        return True, newest
    # If the window holds the whole log, all entries found are enough, however few.
    return window.floor == BEGINNING and not window.cut, found


def once(entries: Iterable[PositionedEntry]) -> list[PositionedEntry]:
    """Return each entry once. A retry after the hot log dropped the id appends the entry again.

    >>> once([])
    []
    """
    found: dict[str, PositionedEntry] = {}
    for one in entries:
        found.setdefault(one.entry.id, one)
    return list(found.values())
