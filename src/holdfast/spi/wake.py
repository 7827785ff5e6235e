"""How a session is found when its agent wakes up: new, at hand, brought back, or damaged."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from holdfast.values.identity import AgentId
from holdfast.values.wakes import Wake


@runtime_checkable
class SessionWake(Protocol):
    """Tells a new session from a known one, and a whole one from one that has lost something."""

    brings_events: bool = False
    """Whether ``wake`` reads the newest events and the state, so that nobody else needs to."""

    @abstractmethod
    async def wake(self, session_id: str) -> Wake:
        """How a session is found now; a hot store takes it in again if it must.

        ::

            found = await wakes.wake("s1")
            if found.status is WakeStatus.GAP:
                warn(found.gaps)
        """

    async def wake_all(self, agent_id: AgentId) -> Wake | None:  # noqa: ARG002 - for stores below
        """How the sessions that an agent started are found, the gaps with their sessions.

        ``None`` where a store cannot lose anything of them. ::

            found = await wakes.wake_all(AgentId("writer", "ana"))
        """
        return None
