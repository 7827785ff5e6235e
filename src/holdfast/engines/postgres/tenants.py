"""Lists the tenants that have data, on Postgres."""

from __future__ import annotations

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.tenants import TenantList

_SQL = load("tenants")


class PostgresTenants(TenantList):
    """Lists the tenants of a database that have data.

    ::

        names = await PostgresTenants(engine).tenants("", 100)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    async def tenants(self, after: str, limit: int) -> list[str]:
        """Return a page of the tenants that have data."""
        rows = await self._engine.fetch_across(_SQL["tenants"], after, limit, safe=True)
        return [row[0] for row in rows]
