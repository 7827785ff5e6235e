"""Channels, on Postgres."""

from __future__ import annotations

from contextlib import AbstractContextManager

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.listener import Bell, Listener
from holdfast.engines.postgres.queries import load
from holdfast.spi.channels import ChannelStorage, StoredEvent

_SQL = load("channel")


class PostgresChannels(ChannelStorage):
    """``ChannelStorage`` in a table; a publish wakes subscribers by a notification.

    ::

        channels = PostgresChannels(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def publish(
        self, name: str, event_id: str, text: str, retention_seconds: float
    ) -> StoredEvent:
        """Append an event and return it. If an event with this id exists, return that one."""
        args = (self._tenant, name, event_id, text, retention_seconds)
        # Safe to repeat: with the same id it is the same event.
        row = await self._engine.fetchrow(_SQL["publish"], *args, safe=True)
        return StoredEvent(event_id, row["number"], text, row["published_at"])

    async def read(self, name: str, after: int, limit: int) -> tuple[int, list[StoredEvent]]:
        """Return the highest number ever used, and the events with numbers above ``after``."""
        rows = await self._engine.fetch(_SQL["read"], self._tenant, name, after, limit, safe=True)
        return rows[0]["newest"], [
            StoredEvent(row["id"], row["number"], row["event"], row["published_at"])
            for row in rows
            if row["number"] is not None
        ]

    async def clear(self, name: str) -> None:
        """Delete all events."""
        await self._engine.fetch(_SQL["clear"], self._tenant, name, safe=True)

    async def newest(self, name: str) -> int:
        """Return the highest number ever used in the channel."""
        return await self._engine.fetchval(_SQL["newest"], self._tenant, name, safe=True) or 0

    def bell(self, name: str) -> AbstractContextManager[Bell]:
        """Return a bell, which wakes its waiter when the channel has a new event."""
        return self._engine.singleton(Listener).bell(f"{self._tenant}\n{name}")
