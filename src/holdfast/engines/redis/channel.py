"""Channels, in Redis."""

from __future__ import annotations

from contextlib import AbstractContextManager

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import ChannelKeys
from holdfast.engines.redis.listener import Bell, Listener
from holdfast.engines.redis.timestamps import duration, timestamp
from holdfast.spi.channels import ChannelStorage, StoredEvent
from holdfast.values.errors import ConflictError


class RedisChannels(ChannelStorage):
    """Stores channels in streams; a publish wakes subscribers through Redis pub/sub.

    ::

        channels = RedisChannels(engine, tenant="acme")
    """

    def __init__(self, engine: Redis, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def publish(
        self, name: str, event_id: str, text: str, retention_seconds: float
    ) -> StoredEvent:
        """Append an event and return it. If an event with this id exists, return that one."""
        args = (event_id, text, duration(retention_seconds))
        # Safe to repeat: with the same id it is the same event.
        answer = await self._engine.run("channel_publish", self._keys(name).all(), args, safe=True)
        if answer is None:
            raise ConflictError("event", event_id, f"the id {event_id!r} is another event's")
        number, when = answer
        return StoredEvent(event_id, int(number), text, timestamp(when))

    async def read(self, name: str, after: int, limit: int) -> tuple[int, list[StoredEvent]]:
        """Return the highest number ever used, and the events with numbers above ``after``."""
        newest, *found = await self._engine.run(
            "channel_read", self._keys(name).all(), (after + 1, limit), safe=True
        )
        return int(newest), [
            StoredEvent(key.decode(), int(number), text.decode(), timestamp(when))
            for number, key, when, text in found
        ]

    async def clear(self, name: str) -> None:
        """Delete all events."""
        await self._engine.run("channel_clear", self._keys(name).all(), (), safe=True)

    async def newest(self, name: str) -> int:
        """Return the highest number ever used in the channel."""
        newest = self._keys(name).newest
        return int(await self._engine.command(newest, "hget", newest, "n", safe=True) or 0)

    def bell(self, name: str) -> AbstractContextManager[Bell]:
        """Return a bell, which wakes its waiter when the channel has a new event."""
        return self._engine.singleton(Listener).bell(self._keys(name).events)

    def _keys(self, name: str) -> ChannelKeys:
        return ChannelKeys.of(self._tenant, name, self._engine.shards)
