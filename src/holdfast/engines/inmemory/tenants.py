"""Lists the tenants that have data, in memory."""

from __future__ import annotations

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.tenants import TenantList


class InMemoryTenants(TenantList):
    """Lists the tenants of this process that have data.

    >>> storage = InMemoryTenants(InMemory())
    """

    def __init__(self, engine: InMemory) -> None:
        self._engine = engine

    async def tenants(self, after: str, limit: int) -> list[str]:
        """Return a page of the tenants that have data."""
        return [one for one in sorted(self._engine.tenants()) if one > after][:limit]
