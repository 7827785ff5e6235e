"""What an agent finds when it wakes up, and what fits its prompt."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from holdfast.values.content import ChatMessage
from holdfast.values.events import Event, Recalled
from holdfast.values.wakes import Gap, WakeStatus

ContextKind: TypeAlias = Literal["state", "fact", "recalled", "recent"]


@dataclass(frozen=True, slots=True)
class Hydrated:
    """What an agent finds when it wakes up.

    >>> Hydrated(WakeStatus.NEW).recent
    []
    """

    status: WakeStatus
    state: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    """The version of the state, for a write that depends on it."""

    recent: list[Event] = field(default_factory=list)
    recalled: list[Recalled] = field(default_factory=list)
    gaps: tuple[Gap, ...] = ()
    """What is lost of the session's log, or may be, when the status is ``gap``; of an agent's whole
    memory, what is of all sessions that it started."""

    state_as_of: datetime | None = None
    """``None``: the state is whole. Otherwise Redis lost it, and it is what was saved at this time:
    writes that another process had acknowledged later may be missing."""

    degraded: str = ""
    """Empty, or which part of recall could not answer or what is not the newest, and why."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One thing that was considered for a prompt.

    >>> ContextItem("fact", "m1", 12).reason
    ''
    """

    kind: ContextKind
    id: str
    tokens: int
    reason: str = ""
    """Why it was left out; empty for what was kept."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A prompt's worth of memory, and the account of it.

    >>> Assembled([], budget_tokens=100).tokens
    0
    """

    messages: list[ChatMessage]
    budget_tokens: int
    tokens: int = 0
    kept: tuple[ContextItem, ...] = ()
    left_out: tuple[ContextItem, ...] = ()
    degraded: str = ""
