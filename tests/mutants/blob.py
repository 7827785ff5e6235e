from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import replace
from typing import Any, Self

from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.inmemory.blob import InMemoryBlobs
from holdfast.spi.blobs import BlobRange
from holdfast.values.errors import CodecError
from tests.mutants.registry import mutant


@mutant("blobs", "test_a_pinned_blob_never_expires")
class PinForgets(InMemoryBlobs):
    """A pin holds for a hundred days, and then the blob is gone."""

    async def open(
        self, ref: str, offset: int, length: int | None, *, whole: bool
    ) -> BlobRange | None:
        info = await self.stat(ref)
        if info and info.pinned and (self._index._engine.now() - info.created_at).days > 100:
            return None
        return await super().open(ref, offset, length, whole=whole)


@mutant("blobs", "test_unpin_starts_a_full_new_window_from_now")
class UnpinExpiresAtOnce(InMemoryBlobs):
    """Unpinning brings back the window of the day it was stored."""

    async def unpin(self, ref: str, ttl_seconds: float) -> bool:
        before = await self.stat(ref)
        there = await super().unpin(ref, ttl_seconds)
        if before and before.pinned:
            age = self._index._engine.now() - before.created_at
            if age.total_seconds() >= ttl_seconds:
                await super().delete(ref)
        return there


@mutant("blobs", "test_a_pin_that_races_the_sweep_wins_or_fails_loudly")
class PinChecksTooEarly(InMemoryBlobs):
    """A pin looks, waits, and then pins what may be gone."""

    async def pin(self, ref: str) -> bool:
        row = self._index._live(ref)
        if row is None:
            return False
        await asyncio.sleep(0)
        info = replace(row.blob.info, expires_at=None, pinned=True)
        self._index._data.rows[ref] = type(row)(row.facts, replace(row.blob, info=info))
        return True


@mutant(
    "blobs",
    "test_an_altered_blob_is_a_codec_error_never_wrong_bytes",
    "test_a_truncated_blob_is_a_codec_error_never_wrong_bytes",
)
class DigestUnchecked(StoredBlobs):
    """Damaged bytes are handed out by resolve."""

    async def resolve(self, ref: str) -> bytes:
        try:
            return await super().resolve(ref)
        except CodecError:
            assert isinstance(self._storage, InMemoryBlobs)
            return self._storage._objects[ref]


@mutant("blobs", "test_a_stream_of_a_truncated_blob_ends_in_a_codec_error_before_its_last_chunk")
class StreamEndsEarly(StoredBlobs):
    """A stream of a truncated blob just stops."""

    async def _chunks(
        self, ref: str, offset: int, length: int | None
    ) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in super()._chunks(ref, offset, length):
                yield chunk
        except CodecError as error:
            if offset or length is not None or "shorter" not in str(error):
                raise


@mutant(
    "blobs",
    "test_a_stream_that_fails_leaves_nothing",
    "test_a_stream_that_is_cancelled_leaves_nothing",
)
class FailedStreamIsKept(StoredBlobs):
    """What came before the source failed is stored."""

    async def store_stream(self, chunks: AsyncIterable[bytes], **how: Any) -> str:
        came = b""

        async def counted() -> AsyncGenerator[Any, None]:
            nonlocal came
            async for chunk in chunks:
                yield chunk
                came += chunk

        try:
            return await super().store_stream(counted(), **how)
        except (OSError, asyncio.CancelledError):
            await self.store(came, **how)
            raise


@mutant("blobs", "test_the_same_bytes_twice_are_two_blobs_with_their_own_lifetimes")
class SameBytesSameObject(InMemoryBlobs):
    """Equal bytes share one object, and the first removal takes it from all."""

    async def delete(self, ref: str) -> bool:
        data = self._objects.get(ref)
        deleted = await super().delete(ref)
        if deleted:
            for other in [key for key, same in self._objects.items() if same == data]:
                del self._objects[other]
        return deleted


@mutant("blobs", "test_an_expired_blob_is_invisible_at_once")
class ExpiredCanBeDeleted(InMemoryBlobs):
    """Deleting an expired blob says that there was one."""

    async def delete(self, ref: str) -> bool:
        return await super().delete(ref) or ref in self._objects


@mutant("blobs", "test_a_ref_is_valid_in_its_tenant_only")
class TenantsShareTheBytes(InMemoryBlobs):
    """A ref of one tenant opens in another."""

    def __init__(self, engine: Any, *, tenant: str = "default") -> None:
        super().__init__(engine, tenant="default" if tenant else tenant)


@mutant("blobs", "test_store_pins_in_the_same_step")
class PinIsForgotten(StoredBlobs):
    """store takes a pin for the usual lifetime."""

    async def store(self, data: bytes | str, **how: Any) -> str:
        how["pinned"] = how.get("pinned", False) and how.get("ttl_seconds") is not None
        return await super().store(data, **how)


@mutant("blobs", "test_store_takes_a_ttl_seconds_of_its_own")
class OneLifetimeForAll(InMemoryBlobs):
    """Every blob that is not pinned lives for a day."""

    async def store(
        self, ref: str, data: bytes, content_type: str, ttl_seconds: float | None
    ) -> None:
        usual = None if ttl_seconds is None else 86_400.0
        await super().store(ref, data, content_type, usual)


@mutant("blobs", "test_a_blob_has_the_subject_that_it_was_stored_with")
class SubjectIsForgotten(InMemoryBlobs):
    """A blob is nobody's, whoever is named, so that no erasure finds it."""

    def for_subject(self, _: str) -> Self:
        return self
