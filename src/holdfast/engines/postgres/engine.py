"""The connections to one Postgres, and how a statement runs on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, LiteralString, Protocol, Self, TypeVar, cast

import asyncpg

from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.capabilities import Capabilities, read_capabilities
from holdfast.engines.postgres.connect import APP_ROLE, connected_pool, prepare
from holdfast.engines.postgres.errors import is_read_only, mapped, to_holdfast
from holdfast.engines.postgres.packed_vectors import VectorCodec
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.retries import DRIVER_ERRORS, NotConnectedError, cause_of, retried
from holdfast.engines.postgres.tenancy import form_for
from holdfast.engines.postgres.tenant_turns import TenantTurns
from holdfast.engines.postgres.watched import (
    LEAVE_SECONDS,
    WatchedConnection,
    statement_deadlines,
)
from holdfast.engines.retry_log import tell_retries
from holdfast.values.errors import HoldfastError, TimedOutError

_SQL = load("engine")
tell_retries()

SEARCH_SECONDS = 5.0
"""How long a search may take."""
_GRACE_SECONDS = 5
"""How much longer than the server's own limit the client waits for a statement."""
_GOODBYE_SECONDS = 5
"""How long ``aclose`` waits for a server that runs no statement."""

Revive = Callable[[], Awaitable[None]]
"""Restarts a server that no longer listens, or raises a ``HoldfastError``."""


class _Singleton(Protocol):
    async def aclose(self) -> None: ...


P = TypeVar("P", bound=_Singleton)


class Postgres:
    """One database: embedded or a server, on our own pool or a borrowed one.

    Every statement names the schema ``holdfast``, passes the tenant as a parameter and needs no
    session state, so it runs on a borrowed pool and through a transaction pooler.

    ::

        engine = await Postgres.open("postgresql://app@db/main")
    """

    name = "postgres"

    def __init__(
        self,
        pool: Any,
        capabilities: Capabilities,
        *,
        owns: bool,
        command_timeout_seconds: float,
        revive: Revive | None = None,
        packs: bool = False,
    ) -> None:
        self._pool = pool
        self._turns = TenantTurns(pool.get_max_size())
        self.pool_use = self._turns.use
        self._owns = owns
        self._revive = revive
        self._at_hand: list[Any] = []
        self._waiting = 0
        self._closing = False
        self.capabilities = capabilities
        self._for_tenant = form_for(distributed=bool(capabilities.distributed), packs=packs)
        self.command_timeout_seconds = command_timeout_seconds
        self.search_timeout_seconds = SEARCH_SECONDS
        self._deadlines = statement_deadlines(command_timeout_seconds + _GRACE_SECONDS)
        self._singletons: dict[Any, _Singleton] = {}
        self.login = ""
        """The superuser or owner that logged in, if it works as ``holdfast_app``; else empty."""

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        max_connections: int = 10,
        pooler: bool = False,
        connect_timeout_seconds: float = 10,
        command_timeout_seconds: float = 60,
        search_timeout_seconds: float = SEARCH_SECONDS,
        auto_migrate: bool = False,
        allow_unsafe: bool = False,
        revive: Revive | None = None,
    ) -> Self:
        """Connect, and check that the schema matches this code and that commits are durable.

        A database without our schema gets it. An older schema is migrated with ``auto_migrate``,
        and refused otherwise. A superuser, and the owner of the schema, work as the role
        ``holdfast_app``, which may only read and write rows.

        ``pooler=True`` uses no named statements, for a transaction pooler such as PgBouncer; there
        the server's own setting limits the time of a statement.
        ``allow_unsafe`` accepts ``synchronous_commit = off`` and ``fsync = off``, and a superuser
        or owner that cannot work as ``holdfast_app``.
        ``revive`` is called when no server listens, to restart a server that we manage.

        ::

            engine = await Postgres.open("postgresql://app@db/main", auto_migrate=True)
        """
        session = {"statement_timeout": f"{max(1, round(command_timeout_seconds * 1000))}"}
        how = {"max_size": max_connections, "timeout": connect_timeout_seconds}
        codec = None if pooler else VectorCodec(connect_timeout_seconds)
        pool = await connected_pool(url, pooler=pooler, session=session, codec=codec, **how)
        login = ""
        try:
            if not pooler:
                login = await prepare(pool, auto_migrate=auto_migrate)
            if login:
                pool.terminate()
                session |= {"role": APP_ROLE}
                pool = await connected_pool(url, pooler=False, session=session, codec=codec, **how)
            engine = await cls._checked(
                pool,
                owns=True,
                auto_migrate=auto_migrate and pooler,
                allow_unsafe=allow_unsafe,
                command_timeout_seconds=command_timeout_seconds,
                revive=revive,
                login=login,
                codec=codec,
            )
        except BaseException:
            pool.terminate()
            raise
        engine.search_timeout_seconds = search_timeout_seconds
        return engine

    @classmethod
    async def from_pool(
        cls,
        pool: Any,
        *,
        command_timeout_seconds: float = 60,
        auto_migrate: bool = False,
        allow_unsafe: bool = False,
    ) -> Self:
        """Borrow a pool; ``aclose`` does not close it.

        ::

            engine = await Postgres.from_pool(pool)
        """
        return await cls._checked(
            pool,
            owns=False,
            auto_migrate=auto_migrate,
            allow_unsafe=allow_unsafe,
            command_timeout_seconds=command_timeout_seconds,
        )

    @classmethod
    async def _checked(
        cls,
        pool: Any,
        *,
        owns: bool,
        auto_migrate: bool,
        allow_unsafe: bool,
        command_timeout_seconds: float,
        revive: Revive | None = None,
        login: str = "",
        codec: VectorCodec | None = None,
    ) -> Self:
        with mapped(wrote=False):
            async with pool.acquire() as connection:
                if auto_migrate:
                    await migrate.migrate(connection)
                migrate.check(await migrate.status(connection))
                capabilities = await read_capabilities(connection)
            if codec is not None:
                await codec.schema_found(pool)
        if not allow_unsafe:
            capabilities.check_safe()
        found = cls(
            pool,
            capabilities,
            owns=owns,
            command_timeout_seconds=command_timeout_seconds,
            revive=revive,
            packs=codec is not None,
        )
        found.login = login
        return found

    @property
    def max_connections(self) -> int:
        """The size of the pool. A caller that holds connections must leave some for others."""
        size: int = self._pool.get_max_size()
        return size

    def singleton(self, kind: Callable[[Postgres], P]) -> P:
        """Return the one ``kind`` of this engine, created on first use; ``aclose`` closes it."""
        if kind not in self._singletons:
            self._singletons[kind] = kind(self)
        return cast("P", self._singletons[kind])

    async def aclose(self) -> None:
        """Close our own pool, even if the server does not answer. A borrowed pool stays open.

        It waits for running statements, until their deadline.
        """
        self._closing = True
        for one in self._singletons.values():
            await one.aclose()
        if self._owns:
            await self._close_pool()
        self._deadlines.close()

    async def _close_pool(self) -> None:
        limit: float = _GOODBYE_SECONDS
        if self._deadlines.waiting:
            limit += self.command_timeout_seconds + _GRACE_SECONDS
        # The driver closes every connection and waits for the server; when that is interrupted,
        # it terminates the connections.
        with mapped(wrote=False), suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while self._at_hand:
                    # If the connection is lost now, the pool has taken it back already.
                    with suppress(asyncpg.InterfaceError, asyncpg.InternalClientError):
                        await self._pool.release(self._at_hand.pop())
                await self._pool.close()

    async def ping(self) -> None:
        """Send one statement and wait for its answer."""
        await self.fetch_across(_SQL["ping"], safe=True)

    async def fetch(self, sql: LiteralString, tenant: str, *args: Any, safe: bool) -> Sequence[Any]:
        """Run a statement for one tenant, its ``$1``, and return its rows.

        It can neither read nor write rows of another tenant, whatever its conditions are.
        ``safe`` marks it as idempotent: it is retried when its answer was lost.
        """
        return await self._fetch(self._for_tenant(sql), (tenant, *args), tenant, safe=safe)

    async def fetch_across(self, sql: LiteralString, *args: Any, safe: bool) -> Sequence[Any]:
        """Run a statement that is not for one tenant, and return its rows.

        It cannot read tables. It calls functions of the schema's owner, which read all tenants.
        """
        return await self._fetch(sql, args, "", safe=safe)

    async def _fetch(
        self, sql: LiteralString, args: tuple[Any, ...], tenant: str, *, safe: bool
    ) -> Sequence[Any]:
        try:
            return await self._once(sql, args, tenant)
        except DRIVER_ERRORS as error:
            return await retried(lambda: self._once(sql, args, tenant), error, safe=safe)

    async def search(self, sql: LiteralString, tenant: str, *args: Any) -> Sequence[Any]:
        """Run a search for one tenant and return its rows.

        After ``search_timeout_seconds`` it cancels the statement and raises ``TimedOutError``.
        """
        limit, sql, args = self.search_timeout_seconds, self._for_tenant(sql), (tenant, *args)
        try:
            return await self._once(sql, args, tenant, limit)
        except TimeoutError as error:
            why = "narrow it, or raise HOLDFAST_SEARCH_TIMEOUT_SECONDS"
            raise TimedOutError(self.name, f"no answer within {limit:g} s: {why}") from error
        except DRIVER_ERRORS as error:
            return await retried(lambda: self._once(sql, args, tenant), error, safe=True)

    async def fetchrow(self, sql: LiteralString, tenant: str, *args: Any, safe: bool) -> Any:
        """Run a statement and return its first row, or ``None``."""
        rows = await self.fetch(sql, tenant, *args, safe=safe)
        return rows[0] if rows else None

    async def fetchval(self, sql: LiteralString, tenant: str, *args: Any, safe: bool) -> Any:
        """Run a statement and return the first value of its first row, or ``None``."""
        rows = await self.fetch(sql, tenant, *args, safe=safe)
        return rows[0][0] if rows else None

    @asynccontextmanager
    async def connection(self, *, writes: bool, tenant: str = "") -> AsyncIterator[Any]:
        """Yield a connection for several statements. None is retried, and each has a deadline.

        Each statement is for ``tenant``, its ``$1``. Without a tenant it cannot read our tables.
        """
        await self._turns.take(tenant)
        try:
            async with self._lent(tenant, writes=writes) as connection:
                yield connection
        finally:
            self._turns.give_back(tenant)

    @asynccontextmanager
    async def _lent(self, tenant: str, *, writes: bool) -> AsyncIterator[Any]:
        try:
            held = await self._take()
        except NotConnectedError as error:
            raise to_holdfast(cause_of(error), wrote=False) from error
        connection = WatchedConnection(held, self._deadlines, tenant, self._for_tenant)
        try:
            with mapped(wrote=writes):
                yield connection
        except BaseException as error:
            await self._leave(held, error)
            raise
        with mapped(wrote=writes), connection.watched():
            await self._pool.release(held)

    async def _once(
        self,
        sql: LiteralString,
        args: tuple[Any, ...],
        tenant: str,
        limit: float | None = None,
    ) -> Sequence[Any]:
        await self._turns.take(tenant)
        try:
            return await self._run(sql, args, limit)
        finally:
            self._turns.give_back(tenant)

    async def _run(
        self, sql: LiteralString, args: tuple[Any, ...], limit: float | None
    ) -> Sequence[Any]:
        connection = await self._take()
        self._deadlines.start(connection)
        try:
            rows: Sequence[Any] = await connection.fetch(sql, *args, timeout=limit)
        except BaseException as error:
            await self._leave(connection, error)
            raise
        finally:
            self._deadlines.end(connection)
        # Checking a connection out of the driver's pool and in again costs more than a short
        # statement does, so keep one that just worked, unless a caller waits for a connection.
        keep = self._owns and not self._waiting and not self._closing
        if keep and not connection.is_closed():
            self._at_hand.append(connection)
        else:
            await self._pool.release(connection)
        return rows

    async def _leave(self, connection: Any, error: BaseException) -> None:
        """Release a connection whose statement failed or was cancelled, or terminate it.

        The driver asks the server to cancel and waits for it. The wait is limited, so that a
        server that does not answer blocks no caller. Errors are suppressed, so that the caller
        gets the first one.
        """
        with suppress(*DRIVER_ERRORS):
            cause = error.__cause__ if isinstance(error, HoldfastError) else error
            # The driver's own state is broken, or the server is no longer the primary: the pool
            # would give the connection to the next caller.
            if isinstance(cause, asyncpg.InternalClientError) or is_read_only(error):
                connection.terminate()
            await self._pool.release(connection, timeout=LEAVE_SECONDS)

    async def _take(self) -> Any:
        while self._at_hand:
            connection = self._at_hand.pop()
            try:
                closed = connection.is_closed()
            except asyncpg.InterfaceError:
                # Lost meanwhile: the pool has taken it back already.
                continue
            if not closed:
                return connection
            await self._pool.release(connection)
        self._waiting += 1
        try:
            return await self._connected()
        except DRIVER_ERRORS as error:
            # Nothing was sent, so a retry is safe after any error.
            raise NotConnectedError(error) from error
        finally:
            self._waiting -= 1

    async def _connected(self) -> Any:
        try:
            return await self._pool.acquire()
        except (ConnectionRefusedError, FileNotFoundError):
            if self._revive is None or self._closing:
                raise
            await self._revive()
            return await self._pool.acquire()
