"""Harnesses of the objects engine: S3 and disk with their own index, S3 with it in Postgres."""

from __future__ import annotations

import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import obstore

from holdfast.contracts.blob_index import BlobIndex
from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.blob_index import ObjectBlobIndex
from holdfast.engines.objects.engine import Objects
from holdfast.engines.postgres.blob_index import PostgresBlobIndex
from holdfast.spi.blob_index import BlobIndexStorage
from holdfast.testing.harness import Harness
from holdfast.values.clock import ManualClock
from holdfast.values.ids import new_ref
from tests.engines.postgres import PostgresHarness
from tests.engines.seaweedfs_server import s3_server


async def everything(engine: Objects) -> list[str | bytes]:
    """All objects below the engine's prefix and what tells their versions apart, around it."""
    found = await obstore.list(engine._store).collect_async()
    return sorted(f"{one['path']} {one['size']} {one['e_tag']}" for one in found)


async def damage(engine: Objects, key: str, *, truncate: bool) -> None:
    """Cut off or flip the last byte of the last part of an object, around the engine."""
    store = engine._store
    found = await obstore.list(store).collect_async()
    parts = [one["path"] for one in found if f"/{key}." in one["path"]]
    last = max(parts, key=lambda path: int(path.rpartition(".")[2]))
    data = bytes(await (await obstore.get_async(store, last)).bytes_async())
    await obstore.put_async(store, last, data[:-1] + (b"" if truncate else bytes([data[-1] ^ 1])))


class _ObjectsHarness(Harness):
    """An engine with nothing but objects, on a clock that the test moves."""

    contracts = frozenset({"blobs", "blob_index"})

    async def open(self) -> None:
        """A prefix of this test's own."""
        self.clock = ManualClock()
        self.url = self._new_url()
        self.engine = await Objects.open(self.url, clock=self.clock)

    @abstractmethod
    def _new_url(self) -> str: ...

    async def close(self) -> None:
        """Let go."""
        await self.engine.aclose()

    async def reopen(self) -> None:
        """A new engine on the same objects."""
        await self.engine.aclose()
        self.engine = await Objects.open(self.url, clock=self.clock)

    async def elapse(self, seconds: float) -> None:
        """Move the clock."""
        self.clock.advance(seconds)

    def index(self, tenant: str) -> BlobIndexStorage:
        """The index of a tenant."""
        return ObjectBlobIndex(self.engine, tenant=tenant)

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store on the engine."""
        if contract == "blob_index":
            return BlobIndex(self.index(tenant))
        return StoredBlobs(ObjectBlobs(self.engine, self.index(tenant), tenant=tenant), **options)

    async def raw(self, contract: str) -> list[str | bytes]:  # noqa: ARG002 - one dump serves all
        """Every object."""
        return await everything(self.engine)

    async def damage_blob(self, ref: str, *, truncate: bool) -> None:
        """Cut off or alter the last byte."""
        blob = await self.index("default").get(ref)
        assert blob is not None
        await damage(self.engine, blob.object_key, truncate=truncate)


class S3Harness(_ObjectsHarness):
    """SeaweedFS over S3, the index in objects beside the bytes."""

    name = "s3"

    def _new_url(self) -> str:
        return s3_server().url(f"holdfast-suite/{new_ref()}")


class DiskHarness(_ObjectsHarness):
    """A folder, the index beside the bytes."""

    name = "disk"

    def _new_url(self) -> str:
        self.folder = Path(tempfile.mkdtemp(prefix="hf-disk-"))
        return self.folder.as_uri()

    async def close(self) -> None:
        """Leave nothing behind."""
        await super().close()
        shutil.rmtree(self.folder)


class S3PostgresHarness(PostgresHarness):
    """SeaweedFS over S3, the index in Postgres 18: the bytes of a service in production."""

    name = "s3-postgres"
    database = "holdfast_blobs"
    stores: ClassVar[dict[str, Callable[..., Any]]] = {"blobs": StoredBlobs}
    contracts = frozenset(stores)

    async def open(self) -> None:
        """A tenant and a prefix of this test's own."""
        self.place = s3_server().url(f"holdfast-suite/{new_ref()}")
        self.objects = await Objects.open(self.place)
        await super().open()

    async def close(self) -> None:
        """Let go of both."""
        await super().close()
        await self.objects.aclose()

    async def reopen(self) -> None:
        """Both anew."""
        await super().reopen()
        self.objects = await Objects.open(self.place)

    def index(self, tenant: str) -> BlobIndexStorage:
        """The index of a tenant."""
        return PostgresBlobIndex(self.engine, tenant=self._prefix + tenant)

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store on both engines."""
        assert contract == "blobs"
        return StoredBlobs(ObjectBlobs(self.objects, self.index(tenant), tenant=tenant), **options)

    async def raw(self, contract: str) -> list[str | bytes]:
        """The rows, and every object."""
        return [*await super().raw(contract), *await everything(self.objects)]

    async def damage_blob(self, ref: str, *, truncate: bool) -> None:
        """Cut off or alter the last byte."""
        blob = await self.index("default").get(ref)
        assert blob is not None
        await damage(self.objects, blob.object_key, truncate=truncate)
