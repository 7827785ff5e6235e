"""How a session is found when its agent wakes up: new, at hand, brought back, or damaged."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from holdfast.kernel.storage.durable_log import Gap
from holdfast.kernel.storage.episodes import Event
from holdfast.kernel.storage.short_term import StateSnapshot
from holdfast.values.identity import AgentId


class WakeStatus(StrEnum):
    """How a session was found.

    >>> WakeStatus("new") is WakeStatus.NEW
    True
    """

    NEW = "new"
    """Nothing was ever written to it."""
    WARM = "warm"
    """All of it is at hand."""
    RESTORED = "restored"
    """It was no longer in the hot store, and was brought back whole from the durable one."""
    GAP = "gap"
    """Something that was acknowledged is lost, or may be; ``gaps`` says which, of what."""


@dataclass(frozen=True, slots=True)
class Wake:
    """How a session was found, from durable marks and never from what happens to be empty.

    >>> Wake(WakeStatus.GAP, gaps=(Gap(epoch=1, from_seq=41, to_seq=60),)).gaps[0].from_seq
    41
    """

    status: WakeStatus
    events: list[Event] = field(default_factory=list)
    """What of its log came along, ascending; a store that only looked brings nothing."""

    gaps: tuple[Gap, ...] = ()
    state: StateSnapshot | None = None
    """Its working state, where the store read it along."""

    degraded: str = ""
    """Empty, or why there may be newer events than these, and up to where the log is known."""


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
