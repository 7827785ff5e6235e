"""A connection that is held for several statements, each of which has a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, LiteralString

import asyncpg

from holdfast.engines.deadlines import Deadlines
from holdfast.engines.postgres.tenancy import Form, for_tenant
from holdfast.values.errors import EngineError

_ASKING = frozenset(
    {
        *("execute", "executemany", "fetch", "fetchmany", "fetchrow", "fetchval", "prepare"),
        *("add_listener", "remove_listener", "reset"),
    }
)
"""The methods of a connection that wait for the server."""
_STATEMENTS = frozenset({"execute", "fetch", "fetchrow", "fetchval"})
"""The methods that take a statement and its parameters."""
LEAVE_SECONDS = 1.0
"""How long a cancelled caller waits for the server to cancel its statement."""


def statement_deadlines(limit_seconds: float) -> Deadlines[Any]:
    """Return deadlines that close the connection of a statement that gets no answer.

    The server ends a long statement itself. The deadlines are for a server, or a network, that
    disappears without an error.
    """

    def cut(connection: Any) -> None:
        # If it is lost at this moment, the pool has taken it back, and its caller gets an error.
        with suppress(asyncpg.InterfaceError):
            connection.terminate()

    return Deadlines(limit_seconds, cut)


class WatchedConnection:
    """A connection of the driver that is terminated if the server takes too long to answer.

    Between two calls it may be idle for any time, for example to listen, or to wait for the next
    chunk of a blob. ::

        async with engine.connection(writes=True) as connection, connection.transaction():
            await connection.fetch(sql)
    """

    def __init__(
        self,
        bare: Any,
        deadlines: Deadlines[Any],
        tenant: str = "",
        prepare: Form = for_tenant,
    ) -> None:
        self.bare = bare
        self._deadlines = deadlines
        self._tenant = tenant
        self._prepare = prepare

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.bare, name)
        if name not in _ASKING:
            return found

        async def asked(*args: Any, **options: Any) -> Any:
            if self._tenant and name in _STATEMENTS:
                args = self._confined(*args)
            with self.watched():
                return await found(*args, **options)

        return asked

    def _confined(self, sql: LiteralString, *args: Any) -> tuple[Any, ...]:
        """Return a statement for the tenant of this connection. Raises for another tenant."""
        if args[:1] != (self._tenant,):
            raise EngineError("postgres", "a connection of one tenant was given to another")
        return (self._prepare(sql), *args)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Set the deadline of one call to the server."""
        self._deadlines.start(self.bare)
        try:
            yield
        finally:
            self._deadlines.end(self.bare)

    def transaction(self, **options: Any) -> _WatchedTransaction:
        """Return a transaction or savepoint; its begin and its end have deadlines as well."""
        return _WatchedTransaction(self, self.bare.transaction(**options))


class _WatchedTransaction:
    def __init__(self, connection: WatchedConnection, block: Any) -> None:
        self._connection = connection
        self._block = block

    async def __aenter__(self) -> None:
        with self._connection.watched():
            await self._block.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, asyncio.CancelledError):
            await self._roll_back(kind, error, trace)
            return
        with self._connection.watched():
            await self._block.__aexit__(kind, error, trace)

    async def _roll_back(
        self, kind: type[BaseException] | None, error: BaseException, trace: TracebackType | None
    ) -> None:
        """Roll back without raising a new error: the caller was cancelled.

        If the server does not answer in time, terminate the connection; the server then rolls back.
        """
        with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            try:
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self._block.__aexit__(kind, error, trace)
            except TimeoutError:
                self._connection.bare.terminate()
