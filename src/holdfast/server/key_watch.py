"""Ends the streams of an API key that was revoked or has expired."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.server.caller import Caller, Doors
from holdfast.values.errors import HoldfastError

_log = logging.getLogger("holdfast.server")


@dataclass(slots=True)
class _Watched:
    ended: asyncio.Event
    job: asyncio.Task[None]
    streams: int = 0


class KeyWatch:
    """Checks the keys that have open streams: each key once, however many streams it has.

    ::

        async with watch.watching(caller) as ended:
            ...  # until ended.is_set()
    """

    def __init__(self, doors: Doors, *, seconds: float) -> None:
        self._doors = doors
        self._seconds = seconds
        self._keys: dict[str, _Watched] = {}

    @asynccontextmanager
    async def watching(self, caller: Caller) -> AsyncIterator[asyncio.Event]:
        """Yield an event that is set when the caller's API key is revoked or expires."""
        if not caller.key_id:
            yield asyncio.Event()
            return
        if caller.key_id not in self._keys:
            ended = asyncio.Event()
            job = asyncio.create_task(self._check(caller, ended))
            self._keys[caller.key_id] = _Watched(ended, job)
        watched = self._keys[caller.key_id]
        watched.streams += 1
        try:
            yield watched.ended
        finally:
            watched.streams -= 1
            if not watched.streams:
                del self._keys[caller.key_id]
                watched.job.cancel()

    async def _check(self, caller: Caller, ended: asyncio.Event) -> None:
        while not ended.is_set():
            await asyncio.sleep(self._seconds)
            try:
                if not await self._doors.holds(caller):
                    ended.set()
            except Exception as error:  # noqa: BLE001 - the key is checked again, whatever it was
                # Streams stay open while the database is down.
                known = isinstance(error, HoldfastError)
                _log.warning(
                    "the key of a stream could not be checked: %s",
                    error,
                    exc_info=None if known else error,
                )
