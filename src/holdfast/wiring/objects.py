"""An object store for the bytes of blobs; their metadata stays in the durable engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from types import ModuleType

from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.blob_index import ObjectBlobIndex
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.leftovers import Leftovers
from holdfast.engines.objects.maintenance import Maintenance
from holdfast.spi.blob_index import BlobIndexStorage
from holdfast.values.errors import HoldfastError
from holdfast.wiring.archive_objects import with_objects
from holdfast.wiring.connections import Connections
from holdfast.wiring.parts import ConnectedEngine
from holdfast.wiring.request import OpenRequest
from holdfast.wiring.settings import Settings
from holdfast.wiring.stores import Stores


async def put_beside(found: Connections, request: OpenRequest) -> None:
    """Make an object store hold the bytes of an opened state's blobs."""
    engine = await opened(request)

    def index_of(tenant: str) -> BlobIndexStorage:
        if found.blob_index is not None:
            return found.blob_index(tenant)
        return ObjectBlobIndex(engine, tenant=tenant)

    def change(tenant: str, stores: Stores) -> Stores:
        ttl = request.settings.blob_ttl_seconds
        blobs = ObjectBlobs(engine, index_of(tenant), tenant=tenant)
        return dataclasses.replace(stores, blobs=StoredBlobs(blobs, ttl_seconds=ttl))

    found.add(connected_engine(engine), change)
    archive = found.archive
    if archive is not None and found.blob_index is not None:
        found.archive = lambda tenant: with_objects(
            archive(tenant), ObjectBlobs(engine, index_of(tenant), tenant=tenant)
        )
        found.unarchived -= {"blobs"}


async def opened(request: OpenRequest) -> Objects:
    """Return a connected engine."""
    return await Objects.open(request.blobs, clock=request.clock)


def connected_engine(engine: Objects) -> ConnectedEngine:
    """Return the engine as a ``State`` uses it."""
    found = engine.capabilities
    warnings = () if found.tested else (f"{found.scheme}: is not tested with this version",)
    return ConnectedEngine(
        engine.name,
        ("blobs",),
        "stored: the object store has it when a write returns",
        engine.ping,
        engine.aclose,
        version=found.describe(),
        capabilities=("conditional create",) if found.conditional_create else (),
        warnings=warnings,
    )


async def warnings_of(engine: Objects) -> tuple[str, ...]:
    """Return what an operator should know about the bytes that a bucket keeps of deleted objects.

    ::

        warnings = await warnings_of(engine)
    """
    if engine.capabilities.scheme != "s3":
        return ()
    try:
        keeps = await Leftovers(engine).keeps_versions()
    except HoldfastError as error:
        return (f"whether the bucket keeps versions of deleted objects is not known: {error}",)
    if not keeps:
        return ()
    why = "delete them by a lifecycle rule, or after an erasure by holdfast db maintain --scrub"
    return (f"the bucket keeps versions of deleted objects: {why}",)


class Upkeep:
    """The maintenance jobs of the configured object store; each opens its own connections.

    ::

        jobs = Upkeep(settings, load(POSTGRES)).jobs()
    """

    def __init__(self, settings: Settings, main: ModuleType) -> None:
        self._request = OpenRequest(
            url=settings.database_url, redis="", blobs=settings.blob_url, settings=settings
        )
        self._main = main

    def jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs by name; a job returns how many objects it processed."""
        return {
            "expired blobs in the object store": lambda: self._do("expired blobs"),
            "orphans in the object store": lambda: self._do("orphaned objects"),
        }

    def scrub_jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs that delete what a bucket of S3 keeps of deleted objects, by name."""
        if not self._request.blobs.startswith("s3:"):
            return {}
        return {
            "versions of deleted objects": lambda: self._scrub(Leftovers.remove_versions),
            "uploads that never ended": lambda: self._scrub(Leftovers.remove_uploads),
        }

    async def _scrub(self, job: Callable[[Leftovers], Awaitable[int]]) -> int:
        engine = await opened(self._request)
        try:
            return await job(Leftovers(engine))
        finally:
            await engine.aclose()

    async def _do(self, job: str) -> int:
        found: Connections = await self._main.connect(self._request)
        try:
            engine = await opened(self._request)
            try:
                index_of = found.blob_index or (lambda one: ObjectBlobIndex(engine, tenant=one))
                return await Maintenance(engine, index_of).jobs()[job]()
            finally:
                await engine.aclose()
        finally:
            await found.close()
