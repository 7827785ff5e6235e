"""Lets every Postgres engine of a test run try its statements without one condition on a tenant.

It is a plugin: ``HOLDFAST_TEST_MUTANTS=file.json pytest -p tests.engines.mutated``. Before a
statement of a tenant runs, it runs for a second tenant, so that both have the same ids. Then each
condition on a tenant that the statement has, or a function or view that it uses, is left out alone:
once below the policies and once as the superuser, in transactions that are rolled back.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString

import asyncpg

from holdfast.engines.postgres.engine import Postgres
from holdfast.values.errors import HoldfastError
from tests.engines.condition_trials import Trials, name_of, twin_of

UNMIRRORED = ("indexing.",)
"""Statements whose parameters have keys of the tenant's own rows."""


class Trying:
    """The connection of one engine on which statements are tried; closed with the engine."""

    def __init__(self, engine: Postgres) -> None:
        self._turn = asyncio.Lock()
        self._connection: Any = None
        self.url: str = getattr(engine, "tried_url", "")

    async def look(self, sql: LiteralString, tenant: str, args: Sequence[Any]) -> None:
        """Try a statement, if it is one that is to be tried now."""
        async with self._turn:
            if self.url and self._connection is None:
                await self._connect()
            if self._connection is not None:
                await TRIALS.look(self._connection, sql, tenant, args)

    async def _connect(self) -> None:
        self._connection = await asyncpg.connect(self.url)
        if await self._connection.fetchval(
            "SELECT rolsuper FROM pg_roles WHERE rolname = session_user"
        ):
            await TRIALS.read(self._connection)
        else:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connection, and open none again."""
        self.url = ""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


TRIALS = Trials()
_open: Any = vars(Postgres)["open"].__func__
_connection: Any = Postgres.connection
_fetch, _search = Postgres.fetch, Postgres.search


async def _opened(cls: Any, url: str, **options: Any) -> Any:
    engine: Postgres = await _open(cls, url, **options)
    vars(engine)["tried_url"] = url
    return engine


async def _tried_fetch(
    self: Postgres, sql: LiteralString, tenant: str, *args: Any, safe: bool
) -> Sequence[Any]:
    await _try_first(self, sql, tenant, args)
    return await _fetch(self, sql, tenant, *args, safe=safe)


async def _tried_search(
    self: Postgres, sql: LiteralString, tenant: str, *args: Any
) -> Sequence[Any]:
    await _try_first(self, sql, tenant, args)
    return await _search(self, sql, tenant, *args)


@asynccontextmanager
async def _tried_connection(
    self: Postgres, *, writes: bool, tenant: str = ""
) -> AsyncIterator[Any]:
    async with _connection(self, writes=writes, tenant=tenant) as connection:
        yield _TriedConnection(connection, self, tenant) if tenant else connection


class _TriedConnection:
    """A connection that is lent for several statements: what it fetches is tried first."""

    def __init__(self, connection: Any, engine: Postgres, tenant: str) -> None:
        self._connection = connection
        self._engine = engine
        self._tenant = tenant

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._connection, name)
        if name not in {"execute", "fetch", "fetchrow", "fetchval"}:
            return found

        async def asked(sql: LiteralString, *args: Any, **options: Any) -> Any:
            if args[:1] == (self._tenant,):
                await _try_first(self._engine, sql, self._tenant, args[1:])
            return await found(sql, *args, **options)

        return asked

    @property
    def bare(self) -> Any:
        """The driver's connection."""
        return _TriedBare(self._connection.bare, self._engine, self._tenant)


class _TriedBare(_TriedConnection):
    """The driver's connection, of which a cursor is opened, with a statement that has its type."""

    async def cursor(self, sql: str, *args: Any) -> Any:
        """Open a cursor after the trials of its statement."""
        plain: Any = sql.replace("($1::holdfast.for_tenant)", "$1")
        await _try_first(self._engine, plain, self._tenant, args[1:])
        return await self._connection.cursor(sql, *args)


async def _try_first(
    engine: Postgres, sql: LiteralString, tenant: str, args: Sequence[Any]
) -> None:
    if not name_of(sql).startswith(UNMIRRORED):
        # What fails for the second tenant, such as an id that the server gave, is not there.
        with suppress(HoldfastError):
            mirrored = (twin_of(tenant) if one == tenant else one for one in args)
            await _fetch(engine, sql, twin_of(tenant), *mirrored, safe=False)
    await engine.singleton(Trying).look(sql, tenant, args)


def pytest_configure() -> None:
    """From now on every engine of this process tries its statements."""
    engine: Any = Postgres
    opened: Any = _opened
    engine.open = classmethod(opened)
    engine.fetch, engine.search = _tried_fetch, _tried_search
    engine.connection = _tried_connection


def pytest_unconfigure() -> None:
    """Write what came of it."""
    path = Path(os.environ["HOLDFAST_TEST_MUTANTS"])
    path.write_text(json.dumps(TRIALS.as_json(), indent=2) + "\n")
