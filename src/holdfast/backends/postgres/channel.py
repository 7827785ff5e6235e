"""Channels, on Postgres."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.listener import Listener
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_count, check_id, check_seconds
from holdfast.kernel.core.codec import decode_json, encode_object
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.channel import (
    DEFAULT_RETENTION_SECONDS,
    Channel,
    ChannelEvent,
    check_cursor,
    check_reached,
)

_SQL = load("channel")


class PostgresChannel(Channel):
    """``Channel`` in a table; a publish wakes subscribers by a notice, wherever they are.

    ::

        channel = PostgresChannel(engine, tenant="acme", name="handovers")
    """

    def __init__(
        self,
        engine: Postgres,
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
        retention = check_seconds("retention_seconds", self._retention_seconds)
        check_id("name", self._name)
        # Safe to repeat: with the same id it is the same event.
        row = await self._engine.fetchrow(
            _SQL["publish"], self._tenant, self._name, event_id, text, retention, safe=True
        )
        return ChannelEvent(event_id, str(row["number"]), decode_json(text), row["published_at"])

    async def read(self, *, after: str | None = None, limit: int = 100) -> list[ChannelEvent]:
        """The events after a cursor."""
        check_count("limit", limit)
        number = check_cursor(after)
        check_id("name", self._name)
        return [_event(row) for row in await self._after(number, limit)]

    def subscribe(self, *, after: str | None = None) -> AsyncGenerator[ChannelEvent, None]:
        """The events after a cursor, and then each one as it comes."""
        check_id("name", self._name)
        return self._follow(check_cursor(after))

    async def tail(self) -> str:
        """The cursor of the newest event."""
        check_id("name", self._name)
        newest = await self._engine.fetchval(_SQL["newest"], self._tenant, self._name, safe=True)
        return str(newest or 0)

    async def _follow(self, number: int) -> AsyncGenerator[ChannelEvent, None]:
        with self._engine.part(Listener).bell(f"{self._tenant}\n{self._name}") as bell:
            found = False
            while True:
                # One at a time: what waits in a slow subscriber's hands could expire there.
                rows = await self._after(number, 1)
                if rows:
                    yield _event(rows[0])
                    number, found = rows[0]["number"], True
                else:
                    await bell.wait(found=found)
                    found = False

    async def _after(self, number: int, limit: int) -> Sequence[Any]:
        rows = await self._engine.fetch(
            _SQL["read"], self._tenant, self._name, number, limit, safe=True
        )
        check_reached(number, newest=rows[0]["newest"])
        return [] if rows[0]["number"] is None else rows


def _event(row: Any) -> ChannelEvent:
    return ChannelEvent(
        row["id"], str(row["number"]), decode_json(row["event"]), row["published_at"]
    )
