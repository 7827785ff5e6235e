"""The driver's connections with a shorter way from a command to its answer.

Connecting, greeting and closing are the driver's; so are the errors. What it does around each
command (health checks, timeouts, the words of an error that does not happen) is left out here: one
timer of ours watches all commands.
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
from redis.exceptions import ResponseError

_AT_ONCE = 1 << 16
"""More than so many bytes are not all taken by the socket at once."""


class _Asked:
    """A connection that can be asked."""

    _writer: Any
    _parser: Any
    disconnect: Any

    async def ask(self, packed: bytes) -> Any:
        """Send one packed command; its answer as bytes."""
        try:
            self._writer.write(packed)
            if len(packed) > _AT_ONCE:
                await self._writer.drain()
            answer = await self._parser.read_response(disable_decoding=True)
        except OSError as error:
            await self.disconnect(nowait=True)
            raise DriverConnectionError(f"the connection broke: {error}") from error
        except BaseException:
            # Its answer would be taken for that of the next command.
            await self.disconnect(nowait=True)
            raise
        if isinstance(answer, ResponseError):
            raise answer
        return answer


class _Short(_Asked, Connection):
    """Over TCP."""


class _ShortUnix(_Asked, UnixDomainSocketConnection):
    """Over a unix socket."""


class _ShortTls(_Asked, SSLConnection):
    """Over TLS."""


_SHORT: dict[type[Any], type[Any]] = {
    Connection: _Short,
    UnixDomainSocketConnection: _ShortUnix,
    SSLConnection: _ShortTls,
}


def shorten(pool: ConnectionPool) -> ConnectionPool:
    """Let a pool of our own make such connections.

    >>> shorten(ConnectionPool()).connection_class.__name__
    '_Short'
    """
    pool.connection_class = _SHORT.get(pool.connection_class, pool.connection_class)
    return pool
