"""Tasks of an operator: migrate, check and maintain a database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.capabilities import read_capabilities
from holdfast.engines.postgres.distribution import (
    Distribution,
    Step,
    distribute,
    read_distribution,
)
from holdfast.engines.postgres.errors import connecting, mapped
from holdfast.engines.postgres.hosts import connector
from holdfast.engines.postgres.logins import make_login
from holdfast.engines.postgres.maintenance import Maintenance
from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.retention import Retain
from holdfast.engines.postgres.roles import make_roles
from holdfast.engines.postgres.scrub import Scrub
from holdfast.values.retention import Retention

_SQL = load("admin")


class PostgresAdmin:
    """One connection of the role that owns the schema, for migrations and maintenance.

    ::

        admin = await PostgresAdmin.open("postgresql://owner@db/main")
        await admin.migrate()
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect. The schema may have any version, or not exist yet."""
        with connecting():
            return cls(await connector(url)(url, timeout=10))

    async def aclose(self) -> None:
        """Close the connection."""
        with mapped(wrote=False):
            await self._connection.close()

    async def status(self) -> migrate.SchemaStatus:
        """Return which migrations are applied, pending and changed."""
        return await migrate.status(self._connection)

    async def migrate(self) -> Sequence[migrate.Migration | migrate.FunctionFile]:
        """Apply the pending migrations, and grant the role ``holdfast_app`` its rights."""
        applied = await migrate.migrate(self._connection)
        with mapped(wrote=True):
            await make_roles(self._connection)
        return applied

    async def make_login(self, name: str, password: str, kinds: Sequence[str]) -> bool:
        """Create a login role for some kinds of processes, or change its password."""
        with mapped(wrote=True):
            return await make_login(self._connection, name, password, kinds)

    async def distribution(self) -> Distribution:
        """Return which objects Citus distributes, and which are left to distribute."""
        return await read_distribution(self._connection)

    async def distribute(
        self, *, move_rows: bool, progress: Callable[[Step], None]
    ) -> Sequence[Step]:
        """Distribute what is left of the schema with Citus, and grant roles their rights."""
        with mapped(wrote=True):
            await make_roles(self._connection)
        return await distribute(self._connection, move_rows=move_rows, progress=progress)

    async def problems(self) -> list[str]:
        """Return the problems that an operator should fix, each with its fix."""
        found = await self.status()
        if found.have <= found.want and found.pending:
            return [f"{len(found.pending)} migrations are pending: run `holdfast db migrate`"]
        if found.have > found.want:
            return [
                f"the schema is at {found.have}, this code knows {found.want}: upgrade holdfast"
            ]
        problems = [f"{name} was changed after it was applied" for name in found.tampered]
        with mapped(wrote=False):
            capabilities = await read_capabilities(self._connection)
            if capabilities.unsafe:
                problems.append(f"{capabilities.unsafe}: turn it on in postgresql.conf")
            if not capabilities.iterative_scan:
                problems.append("pgvector is older than 0.8: update it for filtered index search")
            missing = await self._connection.fetch(_SQL["missing_rights"])
            unconfined = await self._connection.fetch(_SQL["unconfined"])
        problems += [
            f"the role {row['role']} may not {row['right']} {row['name']}" for row in missing
        ]
        problems += [
            f"the table {row['name']} shows a statement the rows of all tenants: run "
            "SELECT holdfast.confine_tables() as the owner of the schema"
            for row in unconfined
        ]
        return problems

    def jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the maintenance jobs by name; each returns how much it did."""
        return Maintenance(self._connection).jobs()

    def retention_jobs(self, policy: Retention) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs that delete data older than the policy allows, by name."""
        return Retain(self._connection, policy).jobs()

    def scrub_jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs that remove the bytes of deleted rows, by name."""
        return Scrub(self._connection).jobs()
