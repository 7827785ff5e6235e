"""Waking sessions: warm in the hot log, restored from the durable log, or with a gap."""

from __future__ import annotations

import dataclasses

from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker, HotStoreDownError
from holdfast.engines.hybrid.grants import Grants
from holdfast.engines.hybrid.horizon import Horizon
from holdfast.engines.hybrid.write_back import WriteBack
from holdfast.spi.hybrid.durable_log import DurableLog
from holdfast.spi.hybrid.hot_log import WINDOW, HotLog, Window
from holdfast.values.states import StateSnapshot
from holdfast.values.wakes import Wake, WakeStatus

WOKEN = 200
"""How many of an agent's sessions, newest first, ``wake_all`` checks."""


class Waker:
    """Wakes the sessions of one tenant.

    ::

        woken = await waker.wake("s1")
    """

    def __init__(
        self,
        hot: HotLog,
        durable: DurableLog,
        grants: Grants,
        back: WriteBack,
        *,
        breaker: CircuitBreaker,
        seen: Horizon,
    ) -> None:
        self._hot = hot
        self._durable = durable
        self._grants = grants
        self._back = back
        self._breaker = breaker
        self._seen = seen

    async def wake(self, session: str) -> Wake:
        """Return a session's window. A cold session is loaded first, once for concurrent callers.

        It includes the hot store's working state, read in the same round trip.

        ::

            woken = await log.wake("s1")
        """
        state: StateSnapshot | None = None
        try:
            here, state = await self._breaker.call(lambda: self._hot.look(session))
            if self._back.unflushed and self._back.unflushed.suspects(session, here):
                await self._back.recover(session)
                here, state = await self._breaker.call(lambda: self._hot.look(session))
            degraded = ""
            self._grants.compare_seen(session, here, self._seen.position(session))
            if (
                here.hot
                and self._breaker.doubt
                and (why := await self._grants.compare(session, here))
            ):
                degraded = self._seen.degraded(session, HotStoreDownError(why, sure=True))
            if here.hot and session not in self._grants.behind:
                self._seen.reach(here.entries[-1:])
                woken = _woken(here, WakeStatus.WARM, state)
                return dataclasses.replace(woken, degraded=degraded)
            window = await self._grants.load(
                session, None, epoch=self._grants.behind.get(session, 0)
            )
        except HotStoreDownError as error:
            return await self._wake_without(session, error)
        if window is None:
            return Wake(WakeStatus.NEW, state=state)
        return _woken(window, WakeStatus.RESTORED, state)

    async def _wake_without(self, session: str, why: HotStoreDownError) -> Wake:
        """Wake a session without the hot log: its durable events, and those this process wrote."""
        late = await self._back.unseen(self._back.unflushed.of(session))
        tail = await self._durable.tail(session, WINDOW)
        reached, gaps = await self._durable.reached(session)
        known = {one.entry.id for one in tail}
        entries = [*tail, *(one for one in late if one.entry.id not in known)]
        entries.sort(key=lambda one: one.position)
        degraded = self._seen.degraded(session, why, reached)
        if reached is None and not entries and session not in self._seen:
            return Wake(WakeStatus.NEW, degraded=degraded)
        status = WakeStatus.GAP if gaps else WakeStatus.RESTORED
        return Wake(status, [one.to_event() for one in entries], gaps, degraded=degraded)

    async def wake_all(self, agent: str) -> Wake:
        """Return the status of an agent's sessions, and wake those that the hot log lost.

        ::

            woken = await log.wake_all("writer/ana")
        """
        granted = await self._durable.hot_sessions(agent, limit=WOKEN)
        try:
            known = await self._breaker.call(lambda: self._hot.known(list(granted)))
        except HotStoreDownError as error:
            degraded = self._seen.degraded(f"all sessions of {agent}", error)
            gaps = await self._durable.agent_gaps(agent)
            status = WakeStatus.GAP if gaps else WakeStatus.RESTORED
            return Wake(status, gaps=gaps, degraded=degraded)
        lost = [session for session, version in granted.items() if known.get(session) != version]
        for session in lost:
            await self.wake(session)
        if gaps := await self._durable.agent_gaps(agent):
            return Wake(WakeStatus.GAP, gaps=gaps)
        return Wake(WakeStatus.RESTORED if lost else WakeStatus.WARM)


def _woken(window: Window, status: WakeStatus, state: StateSnapshot | None) -> Wake:
    events = [one.to_event() for one in window.entries]
    if not window.gaps and (window.known is None or window.known.seq == 0):
        return Wake(WakeStatus.NEW, state=state)
    return Wake(WakeStatus.GAP if window.gaps else status, events, window.gaps, state)
