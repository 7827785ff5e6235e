"""Channels, in Redis."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from holdfast.backends.redis.engine import Redis
from holdfast.backends.redis.keys import ChannelKeys
from holdfast.backends.redis.listener import Listener
from holdfast.backends.redis.moments import moment, span
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


class RedisChannel(Channel):
    """``Channel`` in a stream; a publish wakes subscribers by a word, wherever they are.

    ::

        channel = RedisChannel(engine, tenant="acme", name="handovers")
    """

    def __init__(
        self,
        engine: Redis,
        *,
        tenant: str = "default",
        name: str = "default",
        retention_seconds: float = DEFAULT_RETENTION_SECONDS,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._name = name
        self._retention_seconds = retention_seconds

    async def publish(self, event: dict[str, Any], *, id: str | None = None) -> ChannelEvent:
        """Append an event."""
        text = encode_object(event, field="event")
        event_id = new_id() if id is None else check_id("id", id)
        retention = span(check_seconds("retention_seconds", self._retention_seconds))
        keys = self._keys()
        # Safe to repeat: with the same id it is the same event.
        answer = await self._engine.run(
            "channel_publish", keys.all(), (event_id, text, retention), safe=True
        )
        if answer is None:
            raise ConflictError("event", event_id, f"the id {event_id!r} is another event's")
        number, when = answer
        return ChannelEvent(event_id, number.decode(), decode_json(text), moment(when))

    async def read(self, *, after: str | None = None, limit: int = 100) -> list[ChannelEvent]:
        """The events after a cursor."""
        check_count("limit", limit)
        number = check_cursor(after)
        return await self._after(self._keys(), number, limit)

    def subscribe(self, *, after: str | None = None) -> AsyncGenerator[ChannelEvent, None]:
        """The events after a cursor, and then each one as it comes."""
        keys = self._keys()
        return self._follow(keys, check_cursor(after))

    async def tail(self) -> str:
        """The cursor of the newest event."""
        newest = self._keys().newest
        number = await self._engine.command(newest, "hget", newest, "n", safe=True)
        return "0" if number is None else str(number.decode())

    async def _follow(self, keys: ChannelKeys, number: int) -> AsyncGenerator[ChannelEvent, None]:
        with self._engine.part(Listener).bell(keys.events) as bell:
            found = False
            while True:
                # One at a time: what waits in a slow subscriber's hands could expire there.
                events = await self._after(keys, number, 1)
                if events:
                    yield events[0]
                    number, found = int(events[0].cursor), True
                else:
                    await bell.wait(found=found)
                    found = False

    async def _after(self, keys: ChannelKeys, number: int, limit: int) -> list[ChannelEvent]:
        newest, *found = await self._engine.run(
            "channel_read", keys.all(), (number + 1, limit), safe=True
        )
        check_reached(number, newest=int(newest))
        return [
            ChannelEvent(key.decode(), cursor.decode(), decode_json(text), moment(when))
            for cursor, key, when, text in found
        ]

    def _keys(self) -> ChannelKeys:
        return ChannelKeys.of(self._tenant, check_id("name", self._name), self._engine.shards)
