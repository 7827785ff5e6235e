"""Maintenance of an object store: delete expired blobs and orphans of all tenants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.engines.objects.blob import ORPHAN_GRACE_SECONDS, ObjectBlobs
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.paths import Paths, decode
from holdfast.spi.blob_index import BlobIndexStorage
from holdfast.values.errors import CodecError


class Maintenance:
    """The jobs for all tenants, safe to run at any time; ``index_of`` returns a tenant's index.

    ::

        jobs = Maintenance(engine, lambda tenant: ObjectBlobIndex(engine, tenant=tenant)).jobs()
        removed = await jobs["expired blobs"]()
    """

    def __init__(
        self,
        engine: Objects,
        index_of: Callable[[str], BlobIndexStorage],
        *,
        grace_seconds: float = ORPHAN_GRACE_SECONDS,
    ) -> None:
        self._engine = engine
        self._index_of = index_of
        self._grace_seconds = grace_seconds

    def jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs by name; each returns how much it deleted."""
        return {
            "expired blobs": lambda: self._of_all(lambda blobs: blobs.sweep()),
            "orphaned objects": lambda: self._of_all(
                lambda blobs: blobs.sweep_orphans(grace_seconds=self._grace_seconds)
            ),
        }

    async def tenants(self) -> list[str]:
        """Return all tenants that have objects in this store.

        ::

            names = await maintenance.tenants()
        """
        return [await self._name(folder) for folder in await self._engine.folders("")]

    async def _of_all(self, job: Callable[[ObjectBlobs], Awaitable[int]]) -> int:
        total = 0
        for tenant in await self.tenants():
            total += await job(ObjectBlobs(self._engine, self._index_of(tenant), tenant=tenant))
        return total

    async def _name(self, folder: str) -> str:
        """Return the tenant of a folder: its decoded name, or the stored name if it is a digest."""
        tenant = decode(folder)
        if tenant is None:
            stored = await self._engine.get(f"{folder}/name")
            tenant = (stored or b"").decode("utf-8", "surrogatepass")
            if Paths(tenant).root != folder:
                raise CodecError(f"the folder {folder!r} has no valid tenant name")
        return tenant
