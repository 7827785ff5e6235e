"""Databases of their own for tests of the Postgres engine."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.engine import Postgres
from holdfast.values.ids import new_ref
from tests.engines.postgres import server

_TEMPLATE = "holdfast_template"
_with_template: set[int] = set()
"""The servers of this process that have a database with the schema, to be copied."""


@asynccontextmanager
async def migrated_database(major: int = 18) -> AsyncIterator[str]:
    """The URL of a database with the schema and nothing else, dropped afterwards."""
    if major not in _with_template:
        async with connected(server(major).url()) as admin:
            await admin.execute(f'CREATE DATABASE "{_TEMPLATE}"')
        async with connected(server(major).url(database=_TEMPLATE)) as connection:
            await migrate.migrate(connection)
        _with_template.add(major)
    async with empty_database(major, template=_TEMPLATE) as url:
        yield url


@asynccontextmanager
async def empty_database(major: int = 18, *, template: str = "template1") -> AsyncIterator[str]:
    """The URL of a database with nothing in it, dropped afterwards."""
    name = f"t_{new_ref().replace('-', '_').lower()}"
    async with connected(server(major).url()) as admin:
        await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield server(major).url(database=name)
    finally:
        async with connected(server(major).url()) as admin:
            await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """A connection for a moment."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def as_keeper(engine: Postgres) -> AsyncIterator[Any]:
    """A connection of an engine that was opened as the superuser, who sees all tenants."""
    async with engine.connection(writes=True) as connection:
        await connection.execute("SET ROLE NONE")
        try:
            yield connection
        finally:
            await connection.execute("RESET ROLE")


async def generic_plan(connection: Any, sql: str) -> str:
    """How a statement runs whatever its parameters are."""
    nulls = ", ".join(["NULL"] * max(int(number) for number in re.findall(r"\$(\d+)", sql)))
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    await connection.execute(f"PREPARE planned AS {sql}")
    rows = await connection.fetch(f"EXPLAIN EXECUTE planned ({nulls})")
    await connection.execute("DEALLOCATE planned")
    return "\n".join(row[0] for row in rows)
