"""How a session was found, and what of it is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.values.events import Event
from holdfast.values.states import StateSnapshot


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


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of a session's log of which something is lost, or may be.

    >>> Gap(epoch=1, from_seq=41, to_seq=60).from_seq
    41
    """

    epoch: int
    from_seq: int
    to_seq: int
    certain: bool = True
    """Whether numbers of the range were given to events that are lost. If not, a process that is
    gone may have acknowledged some, none or all of them: ``to_seq`` is only the highest that it
    could have used."""

    session_id: str = ""
    """The session, where the gaps of all sessions of an agent are listed."""
