"""Waking sessions: from the hot store, or restored from the durable one."""

from __future__ import annotations

import dataclasses

from holdfast.engines.hybrid.log import HybridLog
from holdfast.engines.hybrid.states import HybridStates
from holdfast.spi.wake import SessionWake
from holdfast.values.identity import AgentId
from holdfast.values.wakes import Wake, WakeStatus


class HybridWake(SessionWake):
    """The status of sessions, by a hot and a durable log, and their working states.

    A session that has only a working state does not count as new. ::

        wakes = HybridWake(log, states)
    """

    brings_events = True

    def __init__(self, log: HybridLog, states: HybridStates) -> None:
        self._log = log
        self._states = states

    async def wake_all(self, agent_id: AgentId) -> Wake:
        """Return the status of the sessions that an agent started."""
        return await self._log.wake_all(str(agent_id))

    async def wake(self, session_id: str) -> Wake:
        """Return a session's newest events, its state, and whether events are missing."""
        found = await self._log.wake(session_id)
        state = await self._states.complete(session_id, found.state)
        known = found.status is WakeStatus.NEW and state.version
        status = WakeStatus.WARM if known else found.status
        return dataclasses.replace(found, status=status, state=state)
