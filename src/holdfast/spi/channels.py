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
        """Return when there may be new events; ``found`` says whether the last read found any."""


class ChannelStorage(Protocol):
    """The channels of one tenant. The caller checks all arguments.

    The events of a channel are numbered from 1, without gaps; numbers are never reused. The first
    event creates a channel.
    """

    @abstractmethod
    async def publish(
        self, name: str, event_id: str, text: str, retention_seconds: float
    ) -> StoredEvent:
        """Append an event, and return it. If an unexpired event has this id, return that one.

        Raises ``ConflictError("event", event_id)`` if that event has another text.
        """

    @abstractmethod
    async def read(self, name: str, after: int, limit: int) -> tuple[int, list[StoredEvent]]:
        """Return the highest number ever used, and the unexpired events above ``after``."""

    @abstractmethod
    async def clear(self, name: str) -> None:
        """Delete all events; numbering continues where it was."""

    @abstractmethod
    async def newest(self, name: str) -> int:
        """Return the number of the newest event ever published; 0 for an unknown channel."""

    @abstractmethod
    def bell(self, name: str) -> AbstractContextManager[Bell]:
        """Return a bell that wakes its waiter when any process publishes to the channel."""
