from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from holdfast.contracts.channel import Channel
from holdfast.engines.inmemory.channel import InMemoryChannels
from holdfast.spi.channels import StoredEvent
from holdfast.values.channels import ChannelEvent
from tests.mutants.registry import mutant


@mutant("channels", "test_many_who_publish_the_same_id_at_once_make_one_event")
class IdIsCheckedTooEarly(InMemoryChannels):
    """A publish looks for its id, waits, and then appends."""

    async def publish(
        self, name: str, event_id: str, text: str, retention_seconds: float
    ) -> StoredEvent:
        seen = {one.id for one in (await self.read(name, 0, 1000))[1]}
        await asyncio.sleep(0)
        if event_id not in seen and name in self._data.channels:
            self._data.channels[name].numbers.pop(event_id, None)
        return await super().publish(name, event_id, text, retention_seconds)


@mutant("channels", "test_a_subscriber_never_sees_an_expired_event")
class StreamsKeepExpiredEvents(Channel):
    """A subscriber still gets what has expired while it was busy."""

    async def _follow(self, name: str, number: int) -> AsyncGenerator[ChannelEvent, None]:
        async for one in super()._follow(name, number):
            late = await self.read(cursor=one.cursor)
            yield one
            for missed in late:
                if missed not in await self.read():
                    yield missed


@mutant(
    "channels",
    "test_a_subscriber_that_comes_back_with_its_cursor_misses_nothing",
    "test_a_subscriber_after_the_tail_sees_only_what_is_new",
)
class CursorIsIgnored(Channel):
    """A subscriber starts at the oldest event whatever its cursor."""

    def subscribe(self, *, cursor: str | None = None) -> AsyncGenerator[ChannelEvent, None]:
        super().subscribe(cursor=cursor)
        return self._follow(self._name, 0)


@mutant("channels", "test_the_same_id_with_another_event_is_a_conflict")
class SecondEventIsDropped(Channel):
    """Another event under a known id is taken for a repetition."""

    async def publish(self, event: dict[str, Any], *, id: str | None = None) -> ChannelEvent:
        for one in await self.read():
            if one.id == id:
                return one
        return await super().publish(event, id=id)
