"""An event of a channel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class ChannelEvent:
    """An event as the channel keeps it.

    >>> from datetime import UTC
    >>> ChannelEvent("e1", "7", {"done": True}, datetime(2030, 1, 1, tzinfo=UTC)).cursor
    '7'
    """

    id: str
    cursor: str
    """Where the event stands: what ``cursor=`` takes. Opaque; the channel's own."""

    event: dict[str, Any]
    published_at: datetime
