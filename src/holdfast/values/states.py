"""The state of a session, as it is read and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """A state with its version, for compare and set, and with the moment it expires.

    >>> StateSnapshot({"step": 2}, version=7).version
    7
    """

    state: dict[str, Any]
    version: int = 0
    """What ``expected_version`` takes; 0 when there is no state."""

    expires_at: datetime | None = None
    """When the state expires unless it is written again; ``None`` for never."""

    degraded: str = ""
    """Empty, or why this may not be the newest: the store that has it does not answer."""

    as_of: datetime | None = None
    """``None``, or when this was saved: the hot store lost its data since, and with it any write
    that another process had acknowledged after this time."""


@dataclass(frozen=True, slots=True)
class StateWrite:
    """A write to a state, checked: what it sets, what it removes, and what was there before.

    >>> StateWrite("s1", {"step": "2"}).fresh
    False
    """

    session: str
    values: dict[str, str] = field(default_factory=dict)
    dropped: Sequence[str] = ()
    ttl_seconds: float | None = None
    fresh: bool = False
    """Nothing of what was there before is left but its window."""

    gone: bool = False
    """The state is removed, window and all."""
