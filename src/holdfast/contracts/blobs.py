"""Blobs, as agents use them."""

from __future__ import annotations

import asyncio
import hashlib
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from io import BytesIO
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.blob_checks import (
    check_chunk,
    check_content_type,
    check_data,
    check_digest,
    check_lifetime,
    check_reach,
)
from holdfast.contracts.front import Front
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.spi.blobs import BlobStorage, end_of, hash_more
from holdfast.values.blobs import MAX_CHUNK_BYTES, BlobInfo
from holdfast.values.checks import (
    check_count,
    check_id,
    check_optional_count,
    check_seconds,
    check_subject,
)
from holdfast.values.errors import NotFoundError, NotSupportedError
from holdfast.values.ids import new_ref

DEFAULT_TTL_SECONDS = 86_400
"""The default lifetime of a blob that is not pinned."""


@runtime_checkable
class BlobStore(Protocol):
    """A store for bytes, with the four methods that every agent needs.

    ``Blobs`` has the further methods of Holdfast's engines. Any object with these methods is a
    ``BlobStore``: check with ``isinstance(store, BlobStore)``.
    """

    @abstractmethod
    async def store(
        self, data: bytes | str, *, content_type: str = "application/octet-stream"
    ) -> str:
        """Store bytes, or text as UTF-8. Returns the ref to read them with.

        ::

            ref = await blobs.store(pdf, content_type="application/pdf")
        """
        ...

    @abstractmethod
    async def resolve(self, ref: str) -> bytes:
        """Return the bytes. Raises ``NotFoundError``, or ``CodecError`` if they are damaged.

        ::

            pdf = await blobs.resolve(ref)
        """
        ...

    @abstractmethod
    async def pin(self, ref: str) -> None:
        """Keep a blob until it is unpinned or deleted.

        ::

            await blobs.pin(ref)
        """
        ...

    @abstractmethod
    async def unpin(self, ref: str) -> None:
        """Let a blob expire again: its full time to live starts now.

        ::

            await blobs.unpin(ref)
        """
        ...


@runtime_checkable
class Blobs(BlobStore, Protocol):
    """A store for bytes: files, media, results too big to pass around.

    A blob that is not pinned expires, so pin what later work still needs. The digest of the bytes
    is stored with them and checked whenever a whole blob is read. A range is checked against the
    size only: read the whole blob if that is not enough.

    Promises:

    - a blob comes back as it was stored
    - text is stored as utf-8
    - an empty blob is legal
    - data that is neither bytes nor text is refused
    - a content type that is empty, long or holds control characters is refused
    - stat returns size, type, digest, times and pin
    - a blob has the subject that it was stored with
    - a subject that is not an id is refused and nothing is stored
    - a ref is short, opaque and new each time
    - the same bytes twice are two blobs with their own lifetimes
    - resolve of an unknown ref is a not found error
    - stat of an unknown ref is a not found error
    - a ref that is not an id is refused
    - a blob lives for 24 hours by default
    - a blob expires when its ttl_seconds have passed
    - an expired blob is invisible at once
    - a pinned blob never expires
    - store pins in the same step
    - store takes a ttl_seconds of its own
    - a pin together with ttl_seconds is refused
    - pin is idempotent
    - pin of an unknown or expired ref is a not found error
    - unpin starts a full new window from now
    - unpin of a blob that is not pinned starts a new window too
    - unpin of an unknown or expired ref is a not found error
    - delete removes the blob and says so
    - a pinned blob can be deleted
    - sweep removes expired blobs and counts them
    - sweep leaves live and pinned blobs alone
    - a pin that races the sweep wins or fails loudly
    - an altered blob is a codec error, never wrong bytes
    - a truncated blob is a codec error, never wrong bytes
    - a stream of an altered blob ends in a codec error before its last chunk
    - a stream of a truncated blob ends in a codec error before its last chunk
    - a range that reaches into what is missing is a codec error
    - open hands out the blob in order, in chunks of at most 1 mib
    - open of an empty blob hands out nothing
    - open of an unknown ref is a not found error
    - a stream may be closed before its end
    - a range reads only that part
    - a range past the end is what there is
    - a length of zero is an empty stream
    - a negative offset or length is refused
    - store_stream keeps the chunks in order
    - store_stream of no chunks is an empty blob
    - a stream that fails leaves nothing
    - a stream that is cancelled leaves nothing
    - a chunk that is not bytes is refused and nothing is left
    - blobs stored at once all survive
    - a ref is valid in its tenant only
    - blobs and pins are still there after a reopen
    """

    @abstractmethod
    async def store(
        self,
        data: bytes | str,
        *,
        content_type: str = "application/octet-stream",
        pinned: bool = False,
        ttl_seconds: float | None = None,
        subject: str | None = None,
    ) -> str:
        """Store bytes, or text as UTF-8. Returns the ref to read them with.

        ``pinned`` keeps the blob until it is unpinned or deleted; ``ttl_seconds`` replaces the
        default lifetime. ``subject`` is the id of the person whom the content is about or from,
        whose blobs ``state.erase(subject=)`` deletes; the default is the owner of a ``for_owner``
        view. ::

            ref = await blobs.store(pdf, content_type="application/pdf", pinned=True)
        """
        ...

    @abstractmethod
    async def stat(self, ref: str) -> BlobInfo:
        """Return the metadata of a blob. Raises ``NotFoundError``.

        ::

            size = (await blobs.stat(ref)).size_bytes
        """
        ...

    @abstractmethod
    async def delete(self, ref: str) -> bool:
        """Delete a blob, pinned or not. Returns whether there was one.

        ::

            gone = await blobs.delete(ref)
        """
        ...

    @abstractmethod
    def open(
        self, ref: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes, or a range of them, in chunks, for blobs larger than memory.

        The last chunk of a whole blob is yielded only after the digest was checked: a loop that
        ends without an error has read the bytes that were stored.

        ::

            async for chunk in blobs.open(ref):
                file.write(chunk)
        """
        ...

    @abstractmethod
    async def store_stream(
        self,
        chunks: AsyncIterable[bytes],
        *,
        content_type: str = "application/octet-stream",
        pinned: bool = False,
        ttl_seconds: float | None = None,
        subject: str | None = None,
    ) -> str:
        """Store bytes that come in chunks, all or none.

        ::

            ref = await blobs.store_stream(response.aiter_bytes(), content_type="video/mp4")
        """
        ...

    @abstractmethod
    async def sweep(self) -> int:
        """Delete expired blobs. Returns how many there were.

        ::

            removed = await blobs.sweep()
        """
        ...


class StoredBlobs(Front, Blobs):
    """Implements ``Blobs``: checks the arguments, then calls the engine's storage.

    ``ttl_seconds`` is the lifetime of a blob that is not pinned. A ref does not name its owner, and
    several owners may know it. So a view for one owner can store, read and pin, but raises
    ``NotSupportedError`` for ``unpin``, ``delete`` and ``sweep``.

    ::

        blobs = StoredBlobs(PostgresBlobs(engine, tenant="acme"), ttl_seconds=3600)
    """

    def __init__(self, storage: BlobStorage, *, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> None:
        self._storage = storage
        self._ttl_seconds = ttl_seconds

    async def store(
        self,
        data: bytes | str,
        *,
        content_type: str = "application/octet-stream",
        pinned: bool = False,
        ttl_seconds: float | None = None,
        subject: str | None = None,
    ) -> str:
        """Store bytes, or text as UTF-8."""
        ref, given = new_ref(), check_data(data)
        kept_as = self._kept_as(content_type, pinned=pinned, ttl_seconds=ttl_seconds)
        await self._of(subject).store(ref, given, *kept_as)
        return ref

    async def resolve(self, ref: str) -> bytes:
        """Return the bytes."""
        # Parts are copied into it while the next ones arrive; ``getvalue`` returns its bytes
        # without a copy.
        data = BytesIO()
        async for part in self._parts(check_id("ref", ref), 0, None, whole=True):
            data.write(part)
        return data.getvalue()

    async def pin(self, ref: str) -> None:
        """Keep a blob until it is unpinned or deleted."""
        if not await self._storage.pin(check_id("ref", ref)):
            raise NotFoundError("blob", ref)

    async def unpin(self, ref: str) -> None:
        """Let a blob expire again."""
        window = check_seconds("ttl_seconds", self._ttl_seconds)
        check_id("ref", ref)
        self._refuse_owner("unpin")
        if not await self._storage.unpin(ref, window):
            raise NotFoundError("blob", ref)

    async def stat(self, ref: str) -> BlobInfo:
        """Return the metadata of a blob."""
        info = await self._storage.stat(check_id("ref", ref))
        if info is None:
            raise NotFoundError("blob", ref)
        return info

    async def delete(self, ref: str) -> bool:
        """Delete a blob."""
        check_id("ref", ref)
        self._refuse_owner("delete")
        return await self._storage.delete(ref)

    def open(
        self, ref: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes in chunks."""
        check_optional_count("length", length)
        return self._chunks(check_id("ref", ref), check_count("offset", offset), length)

    async def store_stream(
        self,
        chunks: AsyncIterable[bytes],
        *,
        content_type: str = "application/octet-stream",
        pinned: bool = False,
        ttl_seconds: float | None = None,
        subject: str | None = None,
    ) -> str:
        """Store bytes that come in chunks."""
        ref = new_ref()
        kept_as = self._kept_as(content_type, pinned=pinned, ttl_seconds=ttl_seconds)
        storage = self._of(subject)
        async with aclosing(_checked(chunks)) as checked:
            await storage.store_stream(ref, checked, *kept_as)
        return ref

    async def sweep(self) -> int:
        """Delete expired blobs."""
        self._refuse_owner("sweep")
        return await self._storage.sweep()

    def _use_scope(self, scope: OwnerScope) -> None:
        super()._use_scope(scope)
        self._storage = self._storage.for_subject(scope.owner)

    def _of(self, subject: str | None) -> BlobStorage:
        """Return the storage for blobs of this subject; ``None`` is the owner of the view."""
        if subject is None:
            return self._storage
        return self._storage.for_subject(check_subject(subject))

    def _refuse_owner(self, name: str) -> None:
        if self._scope.owner:
            raise NotSupportedError(
                "blob",
                f"blobs.{name} for one owner",
                why=f"owners share stored blobs: call blobs.{name} of the state, not of "
                "state.for_owner(...)",
            )

    def _kept_as(
        self, content_type: str, *, pinned: bool, ttl_seconds: float | None
    ) -> tuple[str, float | None]:
        window = check_lifetime(pinned=pinned, ttl_seconds=ttl_seconds, default=self._ttl_seconds)
        return check_content_type(content_type), window

    async def _chunks(
        self, ref: str, offset: int, length: int | None
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._parts(ref, offset, length, whole=False)) as parts:
            async for part in parts:
                view = memoryview(part)
                for at in range(0, len(view), MAX_CHUNK_BYTES):
                    yield bytes(view[at : at + MAX_CHUNK_BYTES])

    async def _parts(
        self, ref: str, offset: int, length: int | None, *, whole: bool
    ) -> AsyncGenerator[Any, None]:
        """Yield the buffers of a range. The last one of a whole blob follows the digest check."""
        found = await self._storage.open(ref, offset, length, whole=whole)
        if found is None:
            raise NotFoundError("blob", ref)
        info, at, end = found.info, offset, end_of(found.info, offset, length)
        everything = offset == 0 and end == info.size_bytes
        digest, hashing = hashlib.sha256(), None
        async with aclosing(found.parts) as parts:
            async for part in parts:
                at += len(part)
                if everything:
                    if hashing:
                        await hashing
                    hashing = asyncio.create_task(hash_more(digest, part))
                    if at == end:
                        await hashing
                        check_digest(ref, info, digest.hexdigest())
                yield part
        if at < end:
            # Deleted while it was read, or damaged.
            await self.stat(ref)
            check_reach(ref, has_bytes=at, needs_bytes=end)


async def _checked(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    count = 0
    async for chunk in chunks:
        yield check_chunk(count, chunk)
        count += 1
