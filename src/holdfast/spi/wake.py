"""Waking a session: whether it is new, complete, restored from Postgres, or has lost events."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from holdfast.values.identity import AgentId
from holdfast.values.wakes import Wake


@runtime_checkable
class SessionWake(Protocol):
    """Detects whether a session is new, and whether events of it are lost."""

    brings_events: bool = False
    """Whether ``wake`` returns the newest events and the state, so that callers need not read
    them."""

    @abstractmethod
    async def wake(self, session_id: str) -> Wake:
        """Return the status of a session. A hot store loads it first if necessary.

        ::

            found = await wakes.wake("s1")
            if found.status is WakeStatus.GAP:
                warn(found.gaps)
        """

    async def wake_all(self, agent_id: AgentId) -> Wake | None:  # noqa: ARG002 - for stores below
        """Return one status for all sessions that an agent started, and their gaps.

        Returns ``None`` if the store cannot lose events. ::

            found = await wakes.wake_all(AgentId("writer", "ana"))
        """
        return None
