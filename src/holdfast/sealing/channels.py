"""Encrypted channels: the text of each event is encrypted."""

from __future__ import annotations

from contextlib import AbstractContextManager

from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Opener, Seal
from holdfast.spi.channels import Bell, ChannelStorage, StoredEvent
from holdfast.values.owners import split_owned


class SealedChannels(ChannelStorage):
    """Encrypts the events that a ``ChannelStorage`` stores.

    ::

        channels = SealedChannels(PostgresChannels(engine), sealing)
    """

    def __init__(self, inner: ChannelStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal

    async def publish(
        self, name: str, event_id: str, text: str, retention_seconds: float
    ) -> StoredEvent:
        """Append an event; a retry encrypts it to the same bytes."""
        self._seal.check("event", text)
        owner, _ = split_owned(name)
        sealer = await self._seal.sealer(owner)
        body = text if sealer is None else sealer.json(_place(name, event_id), text, again=True)
        stored = await self._inner.publish(name, event_id, body, retention_seconds)
        return stored._replace(text=text)

    async def read(self, name: str, after: int, limit: int) -> tuple[int, list[StoredEvent]]:
        """Return the newest number, and events."""
        newest, found = await self._inner.read(name, after, limit)
        opener = await self._seal.opener(*(one.text for one in found))
        if opener.is_plain:
            return newest, found
        return newest, [_opened(opener, name, one) for one in found]

    async def clear(self, name: str) -> None:
        """Delete all events."""
        await self._inner.clear(name)

    async def newest(self, name: str) -> int:
        """Return the newest number."""
        return await self._inner.newest(name)

    def bell(self, name: str) -> AbstractContextManager[Bell]:
        """Return a bell that a publish rings."""
        return self._inner.bell(name)


def _place(name: str, event_id: str) -> Place:
    return Place("channel", split_owned(name)[1], event_id)


def _opened(opener: Opener, name: str, stored: StoredEvent) -> StoredEvent:
    owner, _ = split_owned(name)
    return stored._replace(text=opener.json_text(owner, _place(name, stored.id), stored.text))
