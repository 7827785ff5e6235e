"""Connections to one server, and how commands are sent over them.

The driver's own code path from a command to its reply takes as much time as the server does. So
hiredis packs a command, the most recently used connection is used next, and one timer closes the
connections whose command has timed out.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from hiredis import pack_command
from redis.exceptions import ResponseError

from holdfast.engines.deadlines import Deadlines
from holdfast.engines.redis.errors import DRIVER_ERRORS, ClosedError, NotSentError
from holdfast.values.backlog import PoolUse

Command: TypeAlias = tuple[Any, ...]


class Server(Protocol):
    """What the engine needs from a server or a cluster."""

    mode: str

    @property
    def broken_at(self) -> float:
        """When a connection was last found broken, by the monotonic clock."""

    def call(self, key: str, command: Command) -> Awaitable[Any]:
        """Send one command to the server that has the key, and return its reply."""

    async def call_many(self, calls: Sequence[tuple[str, Command]]) -> list[Any]:
        """Send commands at once and return their replies; a failed command's is its error."""

    async def call_each(self, command: Command) -> list[Any]:
        """Send one command to every server that holds data, and return their replies."""

    def listen(self) -> Any:
        """Return a new connection that is not connected yet."""

    async def aclose(self) -> None:
        """Close the connections that the engine owns."""


class Lender(Protocol):
    """A connection pool: lends connections and takes them back."""

    broken_at: float

    async def take(self) -> Any:
        """Return a connection that is ready."""

    def give(self, connection: Any) -> Awaitable[None] | None:
        """Give a connection back to the pool. Returns what the caller must await, if anything."""

    async def aclose(self) -> None:
        """Close the connections that the engine owns."""


class SingleServer:
    """A standalone server.

    ::

        server = SingleServer(pool, BorrowedConnections(pool), 10)
    """

    mode = "standalone"

    def __init__(self, pool: Any, lender: Lender, limit_seconds: float) -> None:
        self._pool = pool
        self._lender = lender
        self._deadlines: Deadlines[Any] = Deadlines(limit_seconds, self._cut)
        self._overdue: set[Any] = set()
        self._cuts: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def broken_at(self) -> float:
        """When a connection was last found broken."""
        return self._lender.broken_at

    def call(self, key: str, command: Command) -> Awaitable[Any]:  # noqa: ARG002 - all live here
        """Send one command, and return its reply."""
        return self._exchange(pack_command(command))

    async def call_many(self, calls: Sequence[tuple[str, Command]]) -> list[Any]:
        """Send commands at once, and return their replies."""
        packed = b"".join(pack_command(command) for _, command in calls)
        answers: list[Any] = await self._exchange(packed, len(calls))
        return answers

    async def call_each(self, command: Command) -> list[Any]:
        """Send one command, and return its reply in a list."""
        return [await self.call("", command)]

    def listen(self) -> Any:
        """Return a new connection."""
        return self._pool.make_connection()

    async def aclose(self) -> None:
        """Close the engine's own connections."""
        self._closed = True
        self._deadlines.close()
        await asyncio.gather(*self._cuts)
        await self._lender.aclose()

    async def _exchange(self, packed: bytes, answers: int | None = None) -> Any:
        """Send packed commands, and return one reply, or a list of ``answers`` replies."""
        if self._closed:
            raise ClosedError
        connection = await self._lender.take()
        self._deadlines.start(connection)
        try:
            if answers is None and (ask := getattr(connection, "ask", None)) is not None:
                return await ask(packed)
            await connection.send_packed_command(packed, check_health=False)
            if answers is None:
                return await connection.read_response(disable_decoding=True)
            return [await _answer(connection) for _ in range(answers)]
        except DRIVER_ERRORS as error:
            if connection in self._overdue:
                raise TimeoutError(f"no answer in {self._deadlines.limit_seconds:g} s") from error
            raise
        finally:
            self._deadlines.end(connection)
            self._overdue.discard(connection)
            if giving := self._lender.give(connection):
                await giving

    def _cut(self, connection: Any) -> None:
        """Close a connection whose command has timed out."""
        self._overdue.add(connection)
        cut = asyncio.create_task(connection.disconnect(nowait=True))
        self._cuts.add(cut)
        cut.add_done_callback(self._cuts.discard)


async def _answer(connection: Any) -> Any:
    try:
        return await connection.read_response(disable_decoding=True)
    except ResponseError as error:
        # An error is a reply too, and the replies after it must still be read.
        return error


def pairs_of(answer: Any) -> dict[bytes, bytes]:
    """Convert a reply of names and values: a flat list, or a dict if a borrowed client uses RESP 3.

    >>> pairs_of([b"a", b"1"])
    {b'a': b'1'}
    """
    if isinstance(answer, dict):
        return dict(answer)
    return dict(zip(answer[::2], answer[1::2], strict=True))


class OwnConnections:
    """The engine's own connection pool; the most recently used connection is used next.

    ::

        lender = OwnConnections(make, limit=50, connect_seconds=10, patience_seconds=10)
    """

    def __init__(
        self,
        make: Callable[[], Any],
        *,
        limit: int,
        connect_seconds: float,
        patience_seconds: float,
    ) -> None:
        self._make = make
        self._limit = limit
        self._connect_seconds = connect_seconds
        self._patience = patience_seconds
        self._free: list[Any] = []
        self._all: set[Any] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self.broken_at = -math.inf
        """When a connection was last found broken, by the monotonic clock."""

    def use(self) -> PoolUse:
        """Return how many connections are in use, and how many calls wait for one."""
        waiting = sum(not turn.done() for turn in self._waiting)
        return PoolUse(self._limit, len(self._all) - len(self._free), waiting)

    async def take(self) -> Any:
        """Return a ready connection: a free one, a new one, or the next that is given back."""
        while not self._free and len(self._all) >= self._limit:
            await self._wait()
        if self._closed:
            raise ClosedError
        used = bool(self._free)
        if used:
            connection = self._free.pop()
        else:
            connection = self._make()
            self._all.add(connection)
        try:
            # ``can_read`` is also true if the server has closed the connection meanwhile.
            if connection.is_connected and await connection.can_read():
                await connection.disconnect(nowait=True)
            if not connection.is_connected:
                if used:
                    self.broken_at = time.monotonic()
                # Includes the handshake: the driver's timeout covers only the connection of the
                # socket.
                async with asyncio.timeout(self._connect_seconds):
                    await connection.connect()
        except BaseException as error:
            if giving := self.give(connection):
                await giving
            if isinstance(error, DRIVER_ERRORS):
                raise NotSentError(error) from error
            raise
        return connection

    def give(self, connection: Any) -> Awaitable[None] | None:
        """Return a connection to the pool, and wake the call that has waited longest."""
        if self._closed:
            closing: Awaitable[None] = connection.disconnect(nowait=True)
            return closing
        self._free.append(connection)
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        self._closed = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        connections, self._all, self._free = self._all, set(), []
        for connection in connections:
            await connection.disconnect(nowait=True)

    async def _wait(self) -> None:
        if self._closed:
            raise ClosedError
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(self._patience):
                await waiter
        except TimeoutError as error:
            self._pass_on(waiter)
            busy = f"all {self._limit} connections have been busy for {self._patience:g} s"
            raise NotSentError(ConnectionError(busy)) from error
        except BaseException:
            self._pass_on(waiter)
            raise

    def _pass_on(self, waiter: asyncio.Future[None]) -> None:
        """Wake the next waiting call if this one was cancelled after it was woken."""
        if waiter.done() and not waiter.cancelled():
            following = next((one for one in self._waiting if not one.done()), None)
            if following is not None:
                following.set_result(None)


class BorrowedConnections:
    """Connections of a borrowed client's pool; each is returned after one command.

    ::

        lender = BorrowedConnections(client.connection_pool)
    """

    broken_at = -math.inf
    """Never set: a borrowed pool does not report broken connections."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def take(self) -> Any:
        """Return a connection from the pool."""
        try:
            return await self._pool.get_connection()
        except DRIVER_ERRORS as error:
            raise NotSentError(error) from error

    def give(self, connection: Any) -> Awaitable[None] | None:
        """Return a connection to the pool."""
        giving: Awaitable[None] = self._pool.release(connection)
        return giving

    async def aclose(self) -> None:
        """Do nothing: the pool is borrowed."""
