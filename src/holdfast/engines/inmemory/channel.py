"""Channels, in process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.channels import Bell, ChannelStorage, StoredEvent
from holdfast.values.errors import ConflictError


class _Bell(Bell):
    def __init__(self) -> None:
        self.rung = asyncio.Event()

    async def wait(self, *, found: bool) -> None:  # noqa: ARG002 - a publish always rings
        await self.rung.wait()
        self.rung.clear()


@dataclass
class _Channel:
    """The events of a channel by number; ``first`` is the lowest number that is still stored."""

    events: dict[int, StoredEvent] = field(default_factory=dict)
    expiries: dict[int, datetime] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    first: int = 1
    last: int = 0
    bells: set[_Bell] = field(default_factory=set, repr=False)

    def purge(self, now: datetime) -> None:
        while self.first <= self.last:
            expires_at = self.expiries.get(self.first)
            if expires_at is not None:
                if expires_at > now:
                    break
                event = self.events.pop(self.first)
                del self.expiries[self.first]
                if self.numbers.get(event.id) == self.first:
                    del self.numbers[event.id]
            self.first += 1

    def visible(self, number: int, now: datetime) -> StoredEvent | None:
        event = self.events.get(number)
        return event if event and self.expiries[number] > now else None


@dataclass
class _Data:
    channels: dict[str, _Channel] = field(default_factory=dict)


class InMemoryChannels(ChannelStorage):
    """Stores channels in dicts; a publish wakes the subscribers of the same event loop.

    >>> channels = InMemoryChannels(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def publish(
        self, name: str, event_id: str, text: str, retention_seconds: float
    ) -> StoredEvent:
        """Append an event and return it. If an event with this id exists, return that one."""
        channel = self._data.channels.setdefault(name, _Channel())
        now = self._engine.now()
        channel.purge(now)
        earlier = channel.visible(channel.numbers.get(event_id, 0), now)
        if earlier is not None:
            if earlier.text != text:
                raise ConflictError("event", event_id, f"the id {event_id!r} is another event's")
            return earlier
        channel.last += 1
        event = StoredEvent(event_id, channel.last, text, now)
        channel.events[event.number] = event
        channel.expiries[event.number] = now + timedelta(seconds=retention_seconds)
        channel.numbers[event_id] = event.number
        for bell in channel.bells:
            bell.rung.set()
        return event

    async def read(self, name: str, after: int, limit: int) -> tuple[int, list[StoredEvent]]:
        """Return the highest number ever used, and the events with numbers above ``after``."""
        channel, now = self._data.channels.get(name) or _Channel(), self._engine.now()
        found: list[StoredEvent] = []
        number = max(after, channel.first - 1)
        while len(found) < limit and number < channel.last:
            number += 1
            event = channel.visible(number, now)
            found += [event] if event else []
        return channel.last, found

    async def clear(self, name: str) -> None:
        """Delete all events."""
        channel = self._data.channels.get(name)
        if channel is not None:
            channel.events, channel.expiries, channel.numbers = {}, {}, {}
            channel.first = channel.last + 1

    async def newest(self, name: str) -> int:
        """Return the highest number ever used in the channel."""
        return (self._data.channels.get(name) or _Channel()).last

    @contextmanager
    def bell(self, name: str) -> Iterator[Bell]:
        """Yield a bell, which wakes its waiter when the channel has a new event."""
        channel, bell = self._data.channels.setdefault(name, _Channel()), _Bell()
        channel.bells.add(bell)
        try:
            yield bell
        finally:
            channel.bells.discard(bell)
