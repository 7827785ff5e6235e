"""Encrypted events and states in the status of a session."""

from __future__ import annotations

import dataclasses

from holdfast.sealing.log import open_events
from holdfast.sealing.seal import Seal
from holdfast.sealing.states import open_state
from holdfast.spi.wake import SessionWake
from holdfast.values.identity import AgentId
from holdfast.values.wakes import Wake


class SealedWake(SessionWake):
    """Decrypts the events and state that a ``SessionWake`` returns.

    ::

        wakes = SealedWake(PostgresWake(engine), sealing)
    """

    def __init__(self, inner: SessionWake, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal
        self.brings_events = inner.brings_events

    async def wake(self, session_id: str) -> Wake:
        """Return the status of a session."""
        found = await self._inner.wake(session_id)
        events = await open_events(self._seal, found.events)
        state = found.state and await open_state(self._seal, session_id, found.state)
        return dataclasses.replace(found, events=events, state=state)

    async def wake_all(self, agent_id: AgentId) -> Wake | None:
        """Return one status for all sessions that an agent started."""
        found = await self._inner.wake_all(agent_id)
        if found is None:
            return None
        return dataclasses.replace(found, events=await open_events(self._seal, found.events))
