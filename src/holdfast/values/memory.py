"""The results of ``hydrate`` and ``assemble``."""

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
    """What an agent needs to resume: status, state, newest events and recalled events.

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
    """The ranges of the session's log that are lost, or may be, if the status is ``gap``. For an
    agent's whole memory, those of all sessions that it started."""

    state_as_of: datetime | None = None
    """``None`` if the state is complete. Otherwise Redis lost it, and this is when it was saved:
    later writes that another process acknowledged may be missing."""

    degraded: str = ""
    """Empty, or which part of the result is missing or outdated, and why."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One item that was considered for a prompt.

    >>> ContextItem("fact", "m1", 12).reason
    ''
    """

    kind: ContextKind
    id: str
    tokens: int
    reason: str = ""
    """Why it was left out; empty if it was kept."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """The part of a memory that fits a prompt, and what was kept and left out.

    >>> Assembled([], budget_tokens=100).tokens
    0
    """

    messages: list[ChatMessage]
    budget_tokens: int
    tokens: int = 0
    kept: tuple[ContextItem, ...] = ()
    left_out: tuple[ContextItem, ...] = ()
    degraded: str = ""
