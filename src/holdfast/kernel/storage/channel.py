"""Channels: events that agents send to each other, kept for a while."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from holdfast.kernel.core.checks import check_text
from holdfast.kernel.core.errors import InvalidInputError

DEFAULT_RETENTION_SECONDS = 86_400
"""How long an event is kept, unless the channel is told otherwise."""


@dataclass(frozen=True, slots=True)
class ChannelEvent:
    """An event as the channel keeps it.

    >>> from datetime import UTC
    >>> ChannelEvent("e1", "7", {"done": True}, datetime(2030, 1, 1, tzinfo=UTC)).cursor
    '7'
    """

    id: str
    cursor: str
    """Where the event stands: what ``after`` takes. Opaque; the channel's own."""

    event: dict[str, Any]
    published_at: datetime


@runtime_checkable
class Channel(Protocol):
    """A named stream of events that any number of subscribers read, each at its own pace.

    The channel does not know its subscribers: each keeps the cursor of the last event it has dealt
    with and comes back with it, so that it sees every event at least once, as long as it comes
    back before the event is ``retention_seconds`` old. Without a cursor it starts at the oldest
    event; to see only what is new, it starts after ``tail()``.

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

    @abstractmethod
    async def publish(self, event: dict[str, Any], *, id: str | None = None) -> ChannelEvent:
        """Append an event; with the ``id`` of an earlier one it is that one again.

        ::

            sent = await channel.publish({"type": "handover", "to": "writer"})
        """
        ...

    @abstractmethod
    async def read(self, *, after: str | None = None, limit: int = 100) -> list[ChannelEvent]:
        """The events after a cursor, as far as they are there, the oldest first.

        ::

            batch = await channel.read(after=cursor)
        """
        ...

    @abstractmethod
    def subscribe(self, *, after: str | None = None) -> AsyncGenerator[ChannelEvent, None]:
        """The events after a cursor, and then each one as it comes, without end.

        ::

            async for one in channel.subscribe(after=cursor):
                await handle(one.event)
                cursor = one.cursor
        """
        ...

    @abstractmethod
    async def tail(self) -> str:
        """The cursor of the newest event: after it comes only what is not there yet.

        ::

            async for one in channel.subscribe(after=await channel.tail()): ...
        """
        ...


def check_cursor(after: object) -> int:
    """The number of the event that a cursor names; 0, before the first, for none.

    >>> check_cursor("7"), check_cursor(None)
    (7, 0)
    """
    if after is None:
        return 0
    text = check_text("after", after)
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) >= 1 << 63:
        raise InvalidInputError("after", "is not a cursor: pass one that this channel gave")
    return int(text)


def check_reached(number: int, *, newest: int) -> None:
    """Refuse a cursor beyond the newest event: this channel never gave it.

    >>> check_reached(7, newest=7)
    """
    if number > newest:
        raise InvalidInputError("after", "is beyond the newest event: it is another channel's")
