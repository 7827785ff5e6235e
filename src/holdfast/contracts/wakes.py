"""The status of a session when an agent resumes it, for the agent's memory."""

from __future__ import annotations

from dataclasses import replace

from holdfast.contracts.front import Front
from holdfast.spi.wake import SessionWake
from holdfast.values.identity import Agent, AgentId
from holdfast.values.wakes import Wake, WakeStatus


class Wakes(Front, SessionWake):
    """Implements ``SessionWake``: checks the arguments, then calls the engine's storage.

    ::

        wakes = Wakes(PostgresWake(engine, tenant="acme"))
    """

    def __init__(self, storage: SessionWake) -> None:
        self._storage = storage
        self.brings_events = storage.brings_events

    async def wake(self, session_id: str) -> Wake:
        """Return the status of a session."""
        found = await self._storage.wake(self._scope.id("session_id", session_id))
        return self._own(found)

    async def wake_all(self, agent_id: Agent) -> Wake | None:
        """Return the status of the sessions that an agent started."""
        agent = AgentId.parse(self._scope.agent(agent_id))
        found = await self._storage.wake_all(agent)
        if found is None or not self._scope.owner:
            return found
        # With shared memory, leave out the gaps in sessions of other owners.
        gaps = tuple(gap for gap in found.gaps if self._scope.owns(gap.session_id))
        lost = found.status is WakeStatus.GAP and not gaps
        status = WakeStatus.WARM if lost else found.status
        return self._own(replace(found, gaps=gaps, status=status))

    def _own(self, found: Wake) -> Wake:
        scope = self._scope
        if not scope.owner:
            return found
        return replace(
            found,
            events=[scope.own_event(one) for one in found.events],
            gaps=tuple(replace(gap, session_id=scope.own(gap.session_id)) for gap in found.gaps),
            state=None if found.state is None else scope.own_state(found.state),
            degraded=scope.own_text(found.degraded),
        )
