"""Which tenants have data, as an engine lists them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol


class TenantList(Protocol):
    """The tenants that have data. The caller checks all arguments."""

    @abstractmethod
    async def tenants(self, after: str, limit: int) -> list[str]:
        """Return up to ``limit`` tenants after ``after``, in the order of their names.

        Only names are read, and no content; how long it takes depends on the number of tenants, not
        on how much they hold. ::

            names = await storage.tenants("", 100)
        """
