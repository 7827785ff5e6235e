"""The Postgres engine whose statements and functions have forgotten every condition on a tenant."""

from __future__ import annotations

import re
from typing import Any, LiteralString

from holdfast.engines.postgres import engine as postgres_engine
from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tenancy import for_tenant
from tests.engines.postgres import PostgresHarness

CONDITION = re.compile(
    r"(?<![\w.])(?:\w+\.)?tenant = "
    r"(?:(?P<parameter>\$1)(?!\d)|(?:\w+\.tenant|in_tenant|the_tenant)\b)"
)
KEPT = frozenset({"all_sessions", "all_tenants", "policies", "unused_indexes"})
"""Files of what runs as the owner of the schema, and of no function that a tenant calls."""


def forget(sql: LiteralString) -> LiteralString:
    """A statement without its conditions on a tenant.

    >>> forget("SELECT FROM holdfast.boards b WHERE b.tenant = $1 AND b.id = $2")
    'SELECT FROM holdfast.boards b WHERE ($1 IS NOT NULL) AND b.id = $2'
    """
    return CONDITION.sub(lambda found: "($1 IS NOT NULL)" if found["parameter"] else "true", sql)


def _forgetful(sql: LiteralString) -> LiteralString:
    return for_tenant(forget(sql))


class ForgetfulHarness(PostgresHarness):
    """Nothing but the policies tells one tenant's rows from another's."""

    name = "postgres18-forgetful"
    database = "holdfast_forgetful"

    async def open(self) -> None:
        """As ever, and with forgetful statements from then on."""
        vars(postgres_engine)["form_for"] = lambda **_: _forgetful
        await super().open()

    async def _grant(self, connection: Any) -> None:
        for file in migrate.function_files():
            if file.name not in KEPT:
                async with connection.transaction():
                    await connection.execute("SET LOCAL check_function_bodies = off")
                    await connection.execute(forget(file.sql))


class UnguardedHarness(ForgetfulHarness):
    """The same as the superuser, for whom there are no policies."""

    name = "postgres18-unguarded"
    database = "holdfast_unguarded"

    async def _connect(self) -> Postgres:
        engine = await super()._connect()
        for connection in [await engine._pool.acquire() for _ in range(8)]:
            await connection.execute("SET ROLE NONE")
            await engine._pool.release(connection)
        return engine
