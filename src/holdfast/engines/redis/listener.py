"""The pub/sub listener of a process: one connection, whose messages wake the waiting tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from redis.exceptions import ResponseError

from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.errors import DRIVER_ERRORS

_log = logging.getLogger("holdfast.redis")

SILENCE_SECONDS = 15.0
"""After this long without a message it sends ``PING``; after twice this long it reconnects."""

LISTENING_POLL_SECONDS = 5.0
FIRST_POLL_SECONDS = 0.02
LAST_POLL_SECONDS = 0.5
LAST_PAUSE_SECONDS = 30.0


class Bell:
    """Wakes a waiter when there may be something new: on a message, or at the next poll.

    ::

        with engine.singleton(Listener).bell(topic) as bell:
            while True:
                found = await look()
                await bell.wait(found=bool(found))
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._patience = FIRST_POLL_SECONDS
        self.rung = asyncio.Event()

    async def wait(self, *, found: bool) -> None:
        """Wait for a message or the next poll. A message that came before the call is not lost."""
        self._patience = FIRST_POLL_SECONDS if found else min(self._patience * 2, LAST_POLL_SECONDS)
        patience = LISTENING_POLL_SECONDS if self._listener.hears else self._patience
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self.rung.wait()
        self.rung.clear()


class Listener:
    """Wakes the tasks that wait for a topic.

    A message is a hint and may be lost. So a waiting task also polls: rarely while the connection
    is up, and often while it is down. ::

        listener = engine.singleton(Listener)
    """

    def __init__(self, engine: Redis) -> None:
        self._engine = engine
        self._bells: dict[str, set[Bell]] = {}
        self._changes: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.hears = False

    @contextmanager
    def bell(self, topic: str) -> Iterator[Bell]:
        """Yield a bell that is rung by messages of a topic."""
        bell = Bell(self)
        bells = self._bells.setdefault(topic, set())
        if not bells:
            self._changes.put_nowait(("subscribe", topic))
        bells.add(bell)
        if not self._closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())
        try:
            yield bell
        finally:
            bells.discard(bell)
            if not bells and self._bells.get(topic) is bells:
                del self._bells[topic]
                self._changes.put_nowait(("unsubscribe", topic))

    async def aclose(self) -> None:
        """Close the connection and wake all waiters, which then raise: the engine is closed."""
        self._closed = True
        while self._task is not None and not self._task.done():
            # In a loop, because the driver may swallow a cancellation.
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=0.1)
        self._ring_all()

    async def _run(self) -> None:
        pause = FIRST_POLL_SECONDS
        while True:
            connection = self._engine.listen()
            # No timeout: long silence is normal here, and ``_listen`` handles it.
            connection.socket_timeout = None
            try:
                await connection.connect()
                pause = FIRST_POLL_SECONDS
                await self._listen(connection)
            except (*DRIVER_ERRORS, ResponseError) as error:
                _log.info("polling instead of listening: %s", error)
            finally:
                self.hears = False
                self._ring_all()
                await connection.disconnect(nowait=True)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE_SECONDS)

    async def _listen(self, connection: Any) -> None:
        """Listen until the connection is lost."""
        while not self._changes.empty():
            self._changes.get_nowait()
        for topic in list(self._bells):
            await connection.send_command("subscribe", topic, check_health=False)
        telling = asyncio.create_task(self._tell(connection))
        try:
            silent = 0
            while silent < 2:
                heard = await connection.read_response(
                    disable_decoding=True, timeout=SILENCE_SECONDS, push_request=True
                )
                silent = 0 if heard is not None else silent + 1
                if heard is None:
                    await connection.send_command("ping", check_health=False)
                else:
                    self.hears = True
                    self._hear(heard)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self, connection: Any) -> None:
        """Subscribe to new topics, and unsubscribe from unused ones."""
        while True:
            word, topic = await self._changes.get()
            if (word == "subscribe") is (topic in self._bells):
                await connection.send_command(word, topic, check_health=False)

    def _hear(self, heard: Any) -> None:
        """Ring the bells of a topic, for a message and for the confirmation of a subscription."""
        if isinstance(heard, list) and len(heard) == 3 and isinstance(heard[1], bytes):
            for bell in self._bells.get(heard[1].decode(), ()):
                bell.rung.set()

    def _ring_all(self) -> None:
        for bells in self._bells.values():
            for bell in bells:
                bell.rung.set()
