"""Blobs, as an engine stores them."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple, Protocol, Self

from holdfast.values.blobs import BlobInfo

SMALL_BYTES = 256 << 10
"""Up to this size bytes are hashed in the event loop: a thread would cost more."""


class BlobRange(NamedTuple):
    """A blob, and the buffers of a range of it, in order.

    If bytes are missing, the buffers end before the first incomplete one.
    """

    info: BlobInfo
    parts: AsyncGenerator[Any, None]


class BlobStorage(Protocol):
    """The blobs of one tenant. The caller checks all arguments. An expired blob is absent."""

    @abstractmethod
    async def store(
        self, ref: str, data: bytes, content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store bytes under a new ref, with their size and their SHA-256.

        Without ``ttl_seconds`` the blob is pinned, in the same step.
        """

    @abstractmethod
    async def store_stream(
        self, ref: str, chunks: AsyncIterator[bytes], content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store chunks of any size, all or none. An error of ``chunks`` is raised to the caller."""

    @abstractmethod
    async def open(
        self, ref: str, offset: int, length: int | None, *, whole: bool
    ) -> BlobRange | None:
        """Return a range of a blob. ``whole``: the caller will hold all of it in memory."""

    @abstractmethod
    async def stat(self, ref: str) -> BlobInfo | None:
        """Return size, type, digest and times of a blob, or ``None``."""

    @abstractmethod
    async def pin(self, ref: str) -> bool:
        """Remove the time to live. Returns whether the blob is there."""

    @abstractmethod
    async def unpin(self, ref: str, ttl_seconds: float) -> bool:
        """Set the time to live, from now. Returns whether the blob is there."""

    @abstractmethod
    async def delete(self, ref: str) -> bool:
        """Delete a blob, pinned or not. Returns whether it was there."""

    @abstractmethod
    async def sweep(self) -> int:
        """Delete expired blobs, and return how many there were."""

    @abstractmethod
    def for_subject(self, subject: str) -> Self:
        """Return a view of the same blobs that gives new ones this subject; empty for none."""


def end_of(info: BlobInfo, offset: int, length: int | None) -> int:
    """Return the offset at which a range of a blob ends.

    >>> from datetime import UTC, datetime
    >>> info = BlobInfo(3, "text/plain", "9f86d0…", datetime.now(UTC), None, pinned=True)
    >>> end_of(info, 1, None), end_of(info, 1, 1), end_of(info, 1, 7)
    (3, 2, 3)
    """
    return info.size_bytes if length is None else min(info.size_bytes, offset + length)


async def hash_more(digest: Any, data: Any) -> None:
    """Add bytes to a digest. Many bytes are hashed in a thread, to not block the event loop.

    ::

        await hash_more(digest, chunk)
    """
    if len(data) <= SMALL_BYTES:
        digest.update(data)
    else:
        await asyncio.to_thread(digest.update, data)
