"""The harness of Postgres with Citus: the database of a cluster that ``HOLDFAST_CITUS_URL`` names.

The URL is of the coordinator, of a superuser, and of a database that has the extensions ``citus``
and ``vector`` on every node. The harness migrates and distributes it.
"""

from __future__ import annotations

import os
from typing import Any

import asyncpg

from holdfast.engines.postgres.admin import PostgresAdmin
from tests.engines.kept_engines import put_back, take
from tests.engines.postgres import Connection, Keeper, PostgresHarness

URL = os.environ.get("HOLDFAST_CITUS_URL", "")

ON_ALL_NODES = "SELECT success, result FROM run_command_on_all_nodes($1)"
MOVABLE_CLOCK = (
    "CREATE SCHEMA IF NOT EXISTS holdfast_test",
    (
        "CREATE TABLE IF NOT EXISTS holdfast_test.clock AS "
        "SELECT interval '0' AS shift, NULL::timestamptz AS held"
    ),
    "GRANT USAGE ON SCHEMA holdfast_test TO PUBLIC",
    "GRANT SELECT ON holdfast_test.clock TO PUBLIC",
    (
        "CREATE OR REPLACE FUNCTION holdfast.now() RETURNS timestamptz LANGUAGE plpgsql STABLE "
        "AS $$ BEGIN RETURN (SELECT coalesce(held, clock_timestamp()) + shift "
        "FROM holdfast_test.clock); END $$"
    ),
)
"""Every node has a clock of its own; they are moved together."""


class CitusHarness(PostgresHarness):
    """A coordinator and its workers."""

    name = "citus"

    @classmethod
    def url(cls) -> str:
        """As the superuser, like the harness of one server."""
        assert URL, "set HOLDFAST_CITUS_URL to a database with the extension citus"
        return URL

    async def hold_clock(self) -> None:
        """Stop the clocks of all nodes at one time."""
        async with self._admin() as connection:
            now = await connection.fetchval("SELECT clock_timestamp()::text")
        await self._shift(f"shift, held = '{now}'")

    async def _shift(self, to: str) -> None:
        keeper = await take((type(self), "keeper"), self._connect_keeper, Keeper)
        try:
            sql = f"UPDATE holdfast_test.clock SET shift = {to}"  # noqa: S608 - numbers of our own
            await _on_all_nodes(keeper.connection, sql)
        finally:
            await put_back((type(self), "keeper"), keeper)

    async def _connect_keeper(self) -> Keeper:
        return Keeper(await asyncpg.connect(self.url()))

    def _admin(self) -> Any:
        return Connection(self.url())

    async def _prepare_database(self) -> None:
        if self.name in self._ready:
            return
        admin = await PostgresAdmin.open(self.url())
        await admin.migrate()
        await admin.distribute(move_rows=True, progress=lambda _: None)
        await admin.aclose()
        async with self._admin() as connection:
            for sql in MOVABLE_CLOCK:
                await _on_all_nodes(connection, f"SET citus.enable_ddl_propagation = off; {sql}")
        self._ready.add(self.name)


async def _on_all_nodes(connection: Any, sql: str) -> None:
    for success, result in await connection.fetch(ON_ALL_NODES, sql):
        assert success, result
