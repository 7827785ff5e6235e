"""A naive ``Channel``: one list of rows that is never shortened."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.channels import ChannelEvent
from holdfast.values.errors import ConflictError


class NaiveChannel:
    """A cursor is the length of the list when the event was added."""

    def __init__(
        self,
        shared: Shared,
        *,
        tenant: str = "default",
        name: str = "default",
        retention_seconds: float = 86_400,
    ) -> None:
        self.shared = shared
        self.key = tenant, name
        self.retention = timedelta(seconds=retention_seconds)
        self.rows = shared.table("channels")

    def _after(self, cursor: int) -> list[ChannelEvent]:
        found = []
        for number, (key, one, expires_at) in enumerate(self.rows, 1):
            if key == self.key and number > cursor and expires_at > self.shared.now:
                found.append(copy.deepcopy(one))
        return found

    async def publish(self, event: dict[str, Any], *, id: str | None = None) -> ChannelEvent:
        """A new row, unless the id is there."""
        for one in self._after(0):
            if one.id == id:
                if repr(one.event) != repr(event):
                    raise ConflictError("event", id)
                return one
        cursor = str(len(self.rows) + 1)
        new = ChannelEvent(id or f"id {cursor}", cursor, copy.deepcopy(event), self.shared.now)
        self.rows.append((self.key, new, self.shared.now + self.retention))
        return copy.deepcopy(new)

    async def clear(self) -> None:
        """Let all rows of the channel expire."""
        for at, (key, one, _) in enumerate(self.rows):
            if key == self.key:
                self.rows[at] = (key, one, self.shared.now)

    async def read(self, *, cursor: str | None = None, limit: int = 100) -> list[ChannelEvent]:
        """All rows that fit, cut off."""
        return self._after(int(cursor or 0))[:limit]

    async def subscribe(self, *, cursor: str | None = None) -> AsyncGenerator[ChannelEvent, None]:
        """Look again and again."""
        number = int(cursor or 0)
        while True:
            for one in self._after(number)[:1]:
                number = int(one.cursor)
                yield one
            await asyncio.sleep(0)

    async def tail(self) -> str:
        """The last row of the channel, expired or not."""
        numbers = [number for number, row in enumerate(self.rows, 1) if row[0] == self.key]
        return str(numbers[-1] if numbers else 0)
