"""Channels, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NamedTuple, Protocol


class StoredEvent(NamedTuple):
    """An event of a channel: its id, its number, its JSON text, and when it was published."""

    id: str
    number: int
    text: str
    published_at: datetime


class Bell(Protocol):
    """Wakes a subscriber. A publish that comes before the wait is not missed."""

    @abstractmethod
    async def wait(self, *, found: bool) -> None:
        """Return when there may be something new; ``found`` if the last read had a result."""


class ChannelStorage(Protocol):
    """The channels of one tenant. Every argument is checked.

    The events of a channel are numbered from 1, without a gap and without end. A channel exists
    with its first event.
    """

    @abstractmethod
    async def publish(
        self, name: str, event_id: str, text: str, retention_seconds: float
    ) -> StoredEvent:
        """Append an event, and return it, or the one that has this id and has not expired.

        Raises ``ConflictError("event", event_id)`` if that has another text.
        """

    @abstractmethod
    async def read(self, name: str, after: int, limit: int) -> tuple[int, list[StoredEvent]]:
        """Return the newest number ever, and the events above ``after`` that have not expired."""

    @abstractmethod
    async def clear(self, name: str) -> None:
        """Delete all events; the newest number stays."""

    @abstractmethod
    async def newest(self, name: str) -> int:
        """Return the number of the newest event ever published; 0 for an unknown channel."""

    @abstractmethod
    def bell(self, name: str) -> AbstractContextManager[Bell]:
        """Return a bell that a publish rings, from any process."""
