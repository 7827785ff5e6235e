"""One connection per engine that receives notifications (``LISTEN``) and wakes waiters."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.watched import LEAVE_SECONDS
from holdfast.values.errors import HoldfastError, UnavailableError
from holdfast.values.ids import new_ref

_SQL = load("channel")
_log = logging.getLogger("holdfast.postgres")

NOTICES = "holdfast"
"""The channel of ``LISTEN``. The payload of a notification is a digest of its topic."""

LEAST_CONNECTIONS = 3
"""One to listen, one for a blob that is being stored, one for everything else."""

ECHO_SECONDS = 5.0
CHECK_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 1.0
LAST_PAUSE_SECONDS = 60.0
LISTENING_POLL_SECONDS = 5.0
FIRST_POLL_SECONDS = 0.02
LAST_POLL_SECONDS = 0.5


class Bell:
    """Wakes a waiter when there may be something new: on a notification, or at the next poll.

    ::

        with engine.singleton(Listener).bell(topic) as bell:
            while True:
                found = await look()
                await bell.wait(found=bool(found))
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._rung = asyncio.Event()
        self._patience = FIRST_POLL_SECONDS

    def ring(self) -> None:
        """Wake the waiter; a ring before the wait is not lost."""
        self._rung.set()

    async def notice(self) -> None:
        """Wait for a notification, without polling. Also returns when listening starts or stops."""
        self._listener.start()
        await self._rung.wait()
        self._rung.clear()

    async def wait(self, *, found: bool) -> None:
        """Wait for a notification or the next poll; ``found``: the last poll found something."""
        self._listener.start()
        self._patience = FIRST_POLL_SECONDS if found else min(self._patience * 2, LAST_POLL_SECONDS)
        patience = LISTENING_POLL_SECONDS if self._listener.hears else self._patience
        await _happens(self._rung, within=patience)
        self._rung.clear()


class Listener:
    """Wakes the waiters of a topic.

    A notification is a hint: waiters also poll, and more often if no notifications arrive. None
    arrive through a transaction pooler, so the listener sends one to itself as a test. A small pool
    has no connection to listen on.

    ::

        listener = engine.singleton(Listener)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine
        self._bells: dict[str, set[Bell]] = {}
        self._key = b""
        self._topics: dict[str, str] = {}
        """The topics of the bells, by their digest."""
        self._task: asyncio.Task[None] | None = None
        self._closed = engine.max_connections < LEAST_CONNECTIONS
        self._own = new_ref()
        self._echo = asyncio.Event()
        # A notification that is sent on a worker of Citus does not arrive: see ADR 59.
        self._all_arrive = not engine.capabilities.distributed
        self.hears = False

    @contextmanager
    def bell(self, topic: str) -> Iterator[Bell]:
        """Yield a bell that is rung by notifications of a topic."""
        bell = Bell(self)
        self._bells.setdefault(topic, set()).add(bell)
        self._topics[self._digest(topic)] = topic
        try:
            yield bell
        finally:
            self._bells[topic].discard(bell)
            if not self._bells[topic]:
                del self._bells[topic]
                self._topics.pop(self._digest(topic), None)

    def start(self) -> None:
        """Start a background task that listens for notifications while there are bells."""
        if not self._closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def aclose(self) -> None:
        """Release the connection and wake all waiters, which then raise: the engine is closed."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._ring_all()

    async def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        # A cancellation may end as the error of a connection that was lost meanwhile.
        while self._bells and not self._closed:
            try:
                await self._listen()
                pause = FIRST_PAUSE_SECONDS
            except HoldfastError as error:
                _log.info("polling instead of listening for notices: %s", error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LAST_PAUSE_SECONDS)

    async def _listen(self) -> None:
        """Listen until the connection is lost or there is no waiter."""
        lost = asyncio.Event()

        def end(_connection: Any) -> None:
            lost.set()
            self._echo.set()

        async with self._engine.connection(writes=False) as connection:
            await connection.add_listener(NOTICES, self._heard)
            connection.add_termination_listener(end)
            try:
                await self._read_key()
                while self._bells and not lost.is_set():
                    await self._echoed()
                    self._set_hears(hears=self._all_arrive)
                    await _happens(lost, within=CHECK_SECONDS)
            finally:
                self._set_hears(hears=False)
                # The pool has taken a lost connection back already.
                if not lost.is_set():
                    connection.remove_termination_listener(end)
                    # If the server does not answer, closing does not wait for it.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LEAVE_SECONDS):
                            await connection.remove_listener(NOTICES, self._heard)

    async def _read_key(self) -> None:
        """Read the key of the digests: a database that was restored may have another key."""
        rows = await self._engine.fetch_across(_SQL["notice_key"], safe=True)
        self._key = rows[0]["key"]
        self._topics = {self._digest(topic): topic for topic in self._bells}

    def _digest(self, topic: str) -> str:
        return notice_digest(self._key, topic)

    async def _echoed(self) -> None:
        """Send a notification to this connection. Raises if it does not arrive."""
        self._echo.clear()
        await self._engine.fetch_across(_SQL["echo"], self._own, safe=True)
        if not await _happens(self._echo, within=ECHO_SECONDS):
            raise UnavailableError(
                self._engine.name, "notices do not arrive, as through a transaction pooler"
            )

    def _set_hears(self, *, hears: bool) -> None:
        """Record whether notifications arrive. On a change, wake all waiters so that they poll."""
        if hears is not self.hears:
            self.hears = hears
            self._ring_all()

    def _heard(self, _connection: Any, _pid: int, _channel: str, notice: str) -> None:
        if notice == self._own:
            self._echo.set()
        for bell in self._bells.get(self._topics.get(notice, ""), ()):
            bell.ring()

    def _ring_all(self) -> None:
        for bells in self._bells.values():
            for bell in bells:
                bell.ring()


def notice_digest(key: bytes, topic: str) -> str:
    """Return the payload of a notification for a topic, as the SQL function ``notify`` makes it.

    >>> notice_digest(b"key", "work")
    '000c4f464f79172247e421e584991344'
    """
    return hashlib.sha256(key + topic.encode()).digest()[:16].hex()


async def _happens(event: asyncio.Event, *, within: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()
