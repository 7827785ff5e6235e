"""Which tenants have data, in process."""

from __future__ import annotations

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.tenants import TenantList


class InMemoryTenants(TenantList):
    """``TenantList`` in the process.

    >>> storage = InMemoryTenants(InMemory())
    """

    def __init__(self, engine: InMemory) -> None:
        self._engine = engine

    async def tenants(self, after: str, limit: int) -> list[str]:
        """Return the tenants that have data."""
        return [one for one in sorted(self._engine.tenants()) if one > after][:limit]
