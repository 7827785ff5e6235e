"""Which log numbers the events of a session: the hot log under a grant, else the durable log."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker
from holdfast.engines.hybrid.metrics import HybridMetrics
from holdfast.spi.hybrid.durable_log import DurableLog
from holdfast.spi.hybrid.hot_entry import BEGINNING, PositionedEntry
from holdfast.spi.hybrid.hot_log import WINDOW, HotLog, UsedUp, Window
from holdfast.values.errors import TimedOutError, UnavailableError
from holdfast.values.failpoints import hit
from holdfast.values.wakes import Gap

_log = logging.getLogger("holdfast.hybrid")


class Grants:
    """Loads sessions into the hot log, and tracks the sessions in which the hot log is behind.

    ``behind`` maps such sessions to the epoch that they have in the durable log. ::

        window = await grants.load("s1", "writer/ana")
    """

    def __init__(
        self,
        hot: HotLog,
        durable: DurableLog,
        *,
        tenant: str,
        breaker: CircuitBreaker,
        metrics: HybridMetrics,
        behind: dict[str, int] | None = None,
    ) -> None:
        self._hot = hot
        self._durable = durable
        self._tenant = tenant
        self._breaker = breaker
        self._metrics = metrics
        self._flights: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._reported: set[tuple[str, Gap]] = set()
        self._writer = hot.writer
        self.settled = 0
        """How often this process has settled a session."""
        self.behind: dict[str, int] = behind or {}
        self.flush: Callable[[str], Awaitable[None]] | None = None
        """Flushes a session."""
        self.recover: Callable[[str], Awaitable[None]] | None = None
        """Writes those events of this process to the durable log that the hot log lost."""

    def mark_behind(self, entries: Sequence[PositionedEntry]) -> None:
        """Record that the hot log is behind in these sessions; the next append advances it first.

        ::

            grants.mark_behind(await durable.append(batch))
        """
        for one in entries:
            session = one.entry.session
            self.behind[session] = max(one.epoch, self.behind.get(session, 0))

    def compare_seen(self, session: str, window: Window, seen: tuple[int, int]) -> None:
        """Record that the hot log is behind if it is below a position that this process has seen.

        This happens while two servers accept writes: each lacks what was written to the other.

        ::

            grants.compare_seen("s1", window, (1, 4))
        """
        known = window.known
        if known is not None and (known.epoch, known.seq) < seen:
            epoch = max(seen[0], known.epoch + 1)
            self.behind[session] = max(epoch, self.behind.get(session, 0))

    async def compare(self, session: str, window: Window) -> str:
        """Check whether the hot log is behind in a session. Returns an error text, or ``""``.

        ::

            problem = await grants.compare("s1", window)
        """
        try:
            reached, _ = await self._durable.reached(session)
        except (UnavailableError, TimedOutError) as error:
            return str(error)
        if reached is not None and window.known is not None and reached[0] > window.known.epoch:
            self.behind[session] = max(reached[0], self.behind.get(session, 0))
        return ""

    async def catch_up(self, sessions: Iterable[str]) -> None:
        """Advance the hot log in the sessions in which it is behind.

        ::

            await grants.catch_up({"s1"})
        """
        for session in set(sessions).intersection(self.behind):
            await self.load(session, None, epoch=self.behind[session])
            self.behind.pop(session, None)

    async def go_on(self, used: UsedUp) -> None:
        """Reserve more numbers for a session, or load it again if its grant is not the newest.

        ::

            await grants.go_on(answer)
        """
        reserved = await self._durable.reserve(
            used.session, grant_version=used.grant_version, writer=self._writer
        )
        if reserved is None:
            # The grant is not the newest: another process has numbered the session since.
            await self.load(used.session, None, epoch=used.epoch + 1)
            return
        hit("append.after_reserve")
        await self._breaker.call(
            lambda: self._hot.reserve(
                used.session, grant_version=used.grant_version, reserved=reserved
            )
        )

    async def settle(self, session: str) -> None:
        """Record that every event which this process acknowledged in a session is stored.

        Before that, events that Redis lost are written to Postgres from this process's memory. ::

            await grants.settle("s1")
        """
        if self.recover is not None:
            await self.recover(session)
        await self.catch_up([session])
        gaps = await self._settled(session)
        await self._breaker.call(lambda: self._hot.set_gaps(session, gaps))

    async def _settled(self, session: str) -> tuple[Gap, ...]:
        self.settled += 1
        return await self._durable.settle(session, self._writer)

    async def load(self, session: str, agent: str | None, *, epoch: int = 0) -> Window | None:
        """Load a session into the hot log, with one grant for all concurrent callers.

        ::

            window = await grants.load("s1", "writer/ana")
        """
        window = await self._breaker.call(lambda: self._hot.window(session))
        if _numbers(window, epoch):
            return window
        async with self.held(session):
            return await self._grant(session, agent, epoch)

    @asynccontextmanager
    async def held(self, session: str, *, seconds: float = 5) -> AsyncIterator[None]:
        """Hold the lock of a session across all processes.

        ::

            async with grants.held("s1", seconds=30):
                await clear()
        """
        async with self._flights.setdefault(session, asyncio.Lock()):
            while True:
                token = await self._breaker.call(lambda: self._hot.lock(session, seconds=seconds))
                if token:
                    break
                await asyncio.sleep(0.01)
            try:
                yield
            finally:
                await self._breaker.call(lambda: self._hot.unlock(session, token))

    async def _grant(self, session: str, agent: str | None, epoch: int) -> Window | None:
        window = await self._breaker.call(lambda: self._hot.window(session))
        if _numbers(window, epoch):
            return window
        hit("refill.after_lock")
        if self.flush is not None and window.orphaned:
            # The hot log lost the session's metadata, but not its entries.
            await self.flush(session)
        if self.recover is not None:
            await self.recover(session)
        grant = await self._durable.load(session, agent, window.known)
        if grant is None:
            return None
        if self._writer and not all(gap.certain for gap in grant.gaps):
            grant = dataclasses.replace(grant, gaps=await self._settled(session))
        hit("refill.after_grant")
        tail = await self._durable.tail(session, WINDOW + 1)
        floor = tail[0].position if len(tail) > WINDOW else BEGINNING
        newest = tail[-WINDOW:]
        await self._breaker.call(
            lambda: self._hot.load(session, grant, floor=floor, entries=newest)
        )
        hit("refill.after_window")
        self._metrics.loaded += 1
        if grant.gaps and (session, grant.gaps[-1]) not in self._reported:
            self._reported.add((session, grant.gaps[-1]))
            _log.error(
                "session %s of %s: acknowledged events may be lost: %s",
                *(session, self._tenant, grant.gaps[-1]),
            )
        return await self._breaker.call(lambda: self._hot.window(session))


def _numbers(window: Window, epoch: int) -> bool:
    """Return whether the hot log numbers a session already, in this epoch or a later one."""
    return window.hot and window.known is not None and window.known.epoch >= epoch
