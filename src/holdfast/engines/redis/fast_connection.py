"""Connections of the driver with less overhead per command.

The driver connects, performs the handshake, closes, and raises its own errors. These connections
skip what it does around each command: health checks, timeouts and preparing error messages. One
timer in ``connections.py`` closes connections whose command has timed out.
"""

from __future__ import annotations

from typing import Any

from redis.asyncio.connection import (
    Connection,
    ConnectionPool,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.exceptions import ConnectionError as DriverConnectionError
from redis.exceptions import ReadOnlyError, ResponseError

_AT_ONCE = 1 << 16
"""A larger command may not fit into the socket's buffer: wait until it is written."""


class FastCommands:
    """Adds ``ask`` to a connection class of the driver."""

    _writer: Any
    _parser: Any
    disconnect: Any

    async def ask(self, packed: bytes) -> Any:
        """Send one packed command and return its reply, undecoded."""
        try:
            self._writer.write(packed)
            if len(packed) > _AT_ONCE:
                await self._writer.drain()
            answer = await self._parser.read_response(disable_decoding=True)
        except OSError as error:
            await self.disconnect(nowait=True)
            raise DriverConnectionError(f"the connection broke: {error}") from error
        except BaseException:
            # The next command would read the reply to this one.
            await self.disconnect(nowait=True)
            raise
        if isinstance(answer, ReadOnlyError):
            # The server is a replica by now: the next connection finds the primary.
            await self.disconnect(nowait=True)
        if isinstance(answer, ResponseError):
            raise answer
        return answer


class _Fast(FastCommands, Connection):
    """A fast connection over TCP."""


class _FastUnix(FastCommands, UnixDomainSocketConnection):
    """A fast connection over a unix socket."""


class _FastTls(FastCommands, SSLConnection):
    """A fast connection over TLS."""


_FAST: dict[type[Any], type[Any]] = {
    Connection: _Fast,
    UnixDomainSocketConnection: _FastUnix,
    SSLConnection: _FastTls,
}


def use_fast_connections(pool: ConnectionPool) -> ConnectionPool:
    """Make a pool create fast connections, and return it. Not for a pool that a caller owns.

    >>> use_fast_connections(ConnectionPool()).connection_class.__name__
    '_Fast'
    """
    pool.connection_class = _FAST.get(pool.connection_class, pool.connection_class)
    return pool
