"""Channels: events that agents send to each other, kept for a while."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

from holdfast.contracts.front import Front
from holdfast.spi.channels import ChannelStorage, StoredEvent
from holdfast.values.channels import ChannelEvent
from holdfast.values.checks import check_count, check_id, check_seconds, check_text
from holdfast.values.codec import decode_json, encode_object
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError
from holdfast.values.ids import new_id

DEFAULT_RETENTION_SECONDS = 86_400
"""The default time for which an event is kept."""


class Channel(Front):
    """A named stream of events that any number of subscribers read, each at its own pace.

    The channel does not store its subscribers. Each subscriber keeps the cursor of the last event
    that it has processed, and subscribes again with it. So it sees every event at least once, if it
    comes back before the event is ``retention_seconds`` old. Without a cursor it starts at the
    oldest event. To see only new events, it starts at ``tail()``.

    Promises:

    - an event comes back as it was published
    - events come in the order in which they were published
    - read starts at the oldest event and takes at most limit
    - read after a cursor returns what came after it
    - read of an empty channel is an empty list
    - a limit of zero is an empty result and a negative one is refused
    - subscribe hands out what is there and then what comes
    - a waiting subscriber is woken by a publish
    - a subscriber that comes back with its cursor misses nothing
    - a subscriber after the tail sees only what is new
    - the tail of an empty channel is a cursor too
    - the tail stays when all events have expired
    - many subscribers see all events in the same order
    - events published at once all arrive, each once
    - closing one subscriber does not disturb the others
    - publishing the same id again is one event
    - many who publish the same id at once make one event
    - the same id with another event is a conflict
    - equal events without an id stay two
    - an event is gone when it is retention_seconds old
    - a subscriber never sees an expired event
    - the cursor of an expired event still works
    - the id of an expired event may be used again
    - clear removes all events and keeps the cursors valid
    - a cursor that is not the channel's is refused
    - an event that is not a json object is refused by its path and nothing is written
    - an event id that is not an id is refused
    - values come back exactly as they went in
    - one channel never sees another's events
    - one tenant never sees another's events
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - events are still there after a reopen
    """

    def __init__(
        self,
        storage: ChannelStorage,
        *,
        name: str = "default",
        retention_seconds: float = DEFAULT_RETENTION_SECONDS,
    ) -> None:
        self._storage = storage
        self._name = name
        self._retention_seconds = retention_seconds

    async def publish(self, event: dict[str, Any], *, id: str | None = None) -> ChannelEvent:
        """Append an event and return it. If an event with this ``id`` is stored, return that one.

        ::

            sent = await channel.publish({"type": "handover", "to": "writer"})
        """
        text = encode_object(event, field="event")
        self._limits.check_value("event", text)
        event_id = new_id() if id is None else check_id("id", id)
        retention = check_seconds("retention_seconds", self._retention_seconds)
        name = check_id("name", self._name)
        return _event(await self._storage.publish(name, event_id, text, retention))

    @renamed(after="cursor")
    async def read(self, *, cursor: str | None = None, limit: int = 100) -> list[ChannelEvent]:
        """Return the stored events after ``cursor``, the oldest first.

        ::

            batch = await channel.read(cursor=cursor)
        """
        check_count("limit", limit)
        number = _number(cursor)
        found = await self._after(check_id("name", self._name), number, limit)
        return [_event(one) for one in found]

    @renamed(after="cursor")
    def subscribe(self, *, cursor: str | None = None) -> AsyncGenerator[ChannelEvent, None]:
        """Yield the events after ``cursor``, and then each new one, without end.

        ::

            async for one in channel.subscribe(cursor=cursor):
                await handle(one.event)
                cursor = one.cursor
        """
        return self._follow(check_id("name", self._name), _number(cursor))

    async def tail(self) -> str:
        """Return the cursor of the newest event: only later events come after it.

        ::

            async for one in channel.subscribe(cursor=await channel.tail()): ...
        """
        return str(await self._storage.newest(check_id("name", self._name)))

    async def clear(self) -> None:
        """Delete all events. Cursors stay valid, and new events come after them.

        ::

            await channel.clear()
        """
        await self._storage.clear(check_id("name", self._name))

    async def _follow(self, name: str, number: int) -> AsyncGenerator[ChannelEvent, None]:
        with self._storage.bell(name) as bell:
            found = False
            while True:
                # One at a time: an event that is read ahead could expire before a slow subscriber
                # takes it.
                events = await self._after(name, number, 1)
                if events:
                    yield _event(events[0])
                    number, found = events[0].number, True
                else:
                    await bell.wait(found=found)
                    found = False

    async def _after(self, name: str, number: int, limit: int) -> list[StoredEvent]:
        newest, found = await self._storage.read(name, number, limit)
        if number > newest:
            raise InvalidInputError(
                "cursor", "is beyond the newest event: pass one that this channel returned"
            )
        return found


def _event(stored: StoredEvent) -> ChannelEvent:
    return ChannelEvent(
        stored.id, str(stored.number), decode_json(stored.text), stored.published_at
    )


def _number(cursor: object) -> int:
    """Return the number of the event that a cursor names; 0 without a cursor."""
    if cursor is None:
        return 0
    text = check_text("cursor", cursor)
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) >= 1 << 63:
        raise InvalidInputError("cursor", "is not a cursor: pass one that this channel returned")
    return int(text)
