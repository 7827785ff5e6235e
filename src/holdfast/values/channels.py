"""An event of a channel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class ChannelEvent:
    """An event as the channel stores it.

    >>> from datetime import UTC
    >>> ChannelEvent("e1", "7", {"done": True}, datetime(2030, 1, 1, tzinfo=UTC)).cursor
    '7'
    """

    id: str
    cursor: str
    """The event's position, for the argument ``cursor``. Opaque, and valid for its channel only."""

    event: dict[str, Any]
    published_at: datetime
