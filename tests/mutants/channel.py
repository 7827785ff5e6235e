from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from holdfast.backends.inmemory.channel import InMemoryChannel
from holdfast.kernel.storage.channel import ChannelEvent
from tests.mutants.registry import mutant


@mutant("channels", "test_many_who_publish_the_same_id_at_once_make_one_event")
class IdIsCheckedTooEarly(InMemoryChannel):
    """A publish looks for its id, waits, and then appends."""

    async def publish(self, event: dict[str, Any], *, id: str | None = None) -> ChannelEvent:
        seen = [one.id for one in await self.read()]
        await asyncio.sleep(0)
        if id is not None and id not in seen:
            self._channel().numbers.pop(id, None)
        return await super().publish(event, id=id)


@mutant("channels", "test_a_subscriber_never_sees_an_expired_event")
class StreamsKeepExpiredEvents(InMemoryChannel):
    """A subscriber still gets what has expired while it was busy."""

    async def _follow(self, number: int) -> AsyncGenerator[ChannelEvent, None]:
        async for one in super()._follow(number):
            late = await self.read(after=one.cursor)
            yield one
            for missed in late:
                if missed not in await self.read():
                    yield missed


@mutant(
    "channels",
    "test_a_subscriber_that_comes_back_with_its_cursor_misses_nothing",
    "test_a_subscriber_after_the_tail_sees_only_what_is_new",
)
class CursorIsIgnored(InMemoryChannel):
    """A subscriber starts at the oldest event whatever its cursor."""

    def subscribe(self, *, after: str | None = None) -> AsyncGenerator[ChannelEvent, None]:
        self._number(after)
        return self._follow(0)


@mutant("channels", "test_the_same_id_with_another_event_is_a_conflict")
class SecondEventIsDropped(InMemoryChannel):
    """Another event under a known id is taken for a repetition."""

    async def publish(self, event: dict[str, Any], *, id: str | None = None) -> ChannelEvent:
        for one in await self.read():
            if one.id == id:
                return one
        return await super().publish(event, id=id)
