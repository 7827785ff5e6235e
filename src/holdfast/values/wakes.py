"""The status of a session when an agent resumes it: complete, restored, or with lost events."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.values.events import Event
from holdfast.values.states import StateSnapshot


class WakeStatus(StrEnum):
    """The status of a session when an agent resumes it.

    >>> WakeStatus("new") is WakeStatus.NEW
    True
    """

    NEW = "new"
    """Nothing was ever written to it."""
    WARM = "warm"
    """It is complete, and nothing had to be restored."""
    RESTORED = "restored"
    """It was no longer in Redis, and was restored completely from Postgres."""
    GAP = "gap"
    """Acknowledged events are lost, or may be; ``gaps`` has their ranges."""


@dataclass(frozen=True, slots=True)
class Wake:
    """The status of a session. It is derived from stored records, never from an empty result.

    >>> Wake(WakeStatus.GAP, gaps=(Gap(epoch=1, from_seq=41, to_seq=60),)).gaps[0].from_seq
    41
    """

    status: WakeStatus
    events: list[Event] = field(default_factory=list)
    """Its newest events, ascending, if the store has read them."""

    gaps: tuple[Gap, ...] = ()
    state: StateSnapshot | None = None
    """Its working state, if the store has read it."""

    degraded: str = ""
    """Empty, or why newer events may be missing, and up to which position the log is known."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of a session's log in which events are lost, or may be.

    >>> Gap(epoch=1, from_seq=41, to_seq=60).from_seq
    41
    """

    epoch: int
    from_seq: int
    to_seq: int
    certain: bool = True
    """Whether events with numbers of the range are known to be lost. If not, a process that has
    ended may have acknowledged some, none or all of them: ``to_seq`` is only the highest number
    that it could have used."""

    session_id: str = ""
    """The session, if the gaps of all sessions of an agent are listed."""
