"""Channels, in process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_count, check_id, check_seconds
from holdfast.kernel.core.codec import decode_json, encode_object
from holdfast.kernel.core.errors import ConflictError
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.channel import (
    DEFAULT_RETENTION_SECONDS,
    Channel,
    ChannelEvent,
    check_cursor,
    check_reached,
)


@dataclass
class _Event:
    id: str
    text: str
    published_at: datetime
    expires_at: datetime


@dataclass
class _Channel:
    """Events by their number; ``first`` is the lowest that is still kept."""

    events: dict[int, _Event] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    first: int = 1
    last: int = 0
    waiters: set[asyncio.Future[None]] = field(default_factory=set, repr=False)

    def purge(self, now: datetime) -> None:
        while self.first <= self.last and self.events[self.first].expires_at <= now:
            event = self.events.pop(self.first)
            if self.numbers.get(event.id) == self.first:
                del self.numbers[event.id]
            self.first += 1

    def add(self, event: _Event) -> int:
        self.last += 1
        self.events[self.last] = event
        self.numbers[event.id] = self.last
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        return self.last

    async def wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self.waiters.add(waiter)
        try:
            await waiter
        finally:
            self.waiters.discard(waiter)


@dataclass
class _Data:
    channels: dict[str, _Channel] = field(default_factory=dict)


class InMemoryChannel(Channel):
    """``Channel`` in a dict; a publish wakes the subscribers that wait on the same event loop.

    >>> channel = InMemoryChannel(InMemory(), tenant="acme", name="handovers")
    """

    def __init__(
        self,
        engine: InMemory,
        *,
        tenant: str = "default",
        name: str = "default",
        retention_seconds: float = DEFAULT_RETENTION_SECONDS,
    ) -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)
        self._name = name
        self._retention_seconds = retention_seconds

    async def publish(self, event: dict[str, Any], *, id: str | None = None) -> ChannelEvent:
        """Append an event."""
        text = encode_object(event, field="event")
        event_id = new_id() if id is None else check_id("id", id)
        retention = timedelta(seconds=check_seconds("retention_seconds", self._retention_seconds))
        channel = self._data.channels.setdefault(check_id("name", self._name), _Channel())
        now = self._engine.now()
        channel.purge(now)
        number = channel.numbers.get(event_id, 0)
        earlier = self._visible(channel, number)
        if earlier is None:
            number = channel.add(_Event(event_id, text, now, now + retention))
            earlier = channel.events[number]
        elif earlier.text != text:
            raise ConflictError("event", event_id, f"the id {event_id!r} is another event's")
        return _view(number, earlier)

    async def read(self, *, after: str | None = None, limit: int = 100) -> list[ChannelEvent]:
        """The events after a cursor."""
        check_count("limit", limit)
        number = self._number(after)
        channel = self._channel()
        found: list[ChannelEvent] = []
        while len(found) < limit and (number := max(number, channel.first - 1)) < channel.last:
            number += 1
            event = self._visible(channel, number)
            if event:
                found.append(_view(number, event))
        return found

    def subscribe(self, *, after: str | None = None) -> AsyncGenerator[ChannelEvent, None]:
        """The events after a cursor, and then each one as it comes."""
        check_id("name", self._name)
        return self._follow(self._number(after))

    async def tail(self) -> str:
        """The cursor of the newest event."""
        return str(self._channel().last)

    async def _follow(self, number: int) -> AsyncGenerator[ChannelEvent, None]:
        channel = self._data.channels.setdefault(self._name, _Channel())
        while True:
            while (number := max(number, channel.first - 1)) < channel.last:
                number += 1
                event = self._visible(channel, number)
                if event:
                    yield _view(number, event)
            await channel.wait()

    def _channel(self) -> _Channel:
        return self._data.channels.get(check_id("name", self._name)) or _Channel()

    def _visible(self, channel: _Channel, number: int) -> _Event | None:
        event = channel.events.get(number)
        return event if event and event.expires_at > self._engine.now() else None

    def _number(self, after: str | None) -> int:
        number = check_cursor(after)
        check_reached(number, newest=self._channel().last)
        return number


def _view(number: int, event: _Event) -> ChannelEvent:
    return ChannelEvent(event.id, str(number), decode_json(event.text), event.published_at)
