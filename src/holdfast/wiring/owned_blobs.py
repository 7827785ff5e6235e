"""The blobs of a tenant, as one owner may use them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable

from holdfast.kernel.core.checks import check_id
from holdfast.kernel.core.errors import NotSupportedError
from holdfast.kernel.storage.blob import BlobInfo, Blobs


class OwnedBlobs(Blobs):
    """Blobs that an owner stores, reads and pins by ref, and cannot take from anybody.

    A ref says nothing of who stored it, and may have been shown to others. So ``unpin``, ``delete``
    and ``sweep`` are refused: they belong to the state that the view was made of.
    """

    def __init__(self, inner: Blobs) -> None:
        self._inner = inner

    async def store(
        self, data: bytes | str, *, content_type: str = "application/octet-stream"
    ) -> str:
        """Keep bytes, or text as UTF-8; the ref to get them back with."""
        return await self._inner.store(data, content_type=content_type)

    async def store_stream(
        self,
        chunks: AsyncIterable[bytes],
        *,
        content_type: str = "application/octet-stream",
    ) -> str:
        """Keep bytes that come in chunks; nothing is kept unless all of them came."""
        return await self._inner.store_stream(chunks, content_type=content_type)

    async def resolve(self, ref: str) -> bytes:
        """The bytes; ``NotFoundError`` when there are none, ``CodecError`` when damaged."""
        return await self._inner.resolve(ref)

    async def stat(self, ref: str) -> BlobInfo:
        """What is known about a blob; ``NotFoundError`` when there is none."""
        return await self._inner.stat(ref)

    def open(
        self, ref: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The bytes in chunks, for blobs larger than memory; a range where one is given."""
        return self._inner.open(ref, offset=offset, length=length)

    async def pin(self, ref: str) -> None:
        """Keep a blob until the state that the view was made of unpins or deletes it."""
        await self._inner.pin(ref)

    async def unpin(self, ref: str) -> None:
        """Refused."""
        check_id("ref", ref)
        raise _refused("unpin")

    async def delete(self, ref: str) -> bool:
        """Refused."""
        check_id("ref", ref)
        raise _refused("delete")

    async def sweep(self) -> int:
        """Refused."""
        raise _refused("sweep")


def _refused(name: str) -> NotSupportedError:
    return NotSupportedError(
        "blob",
        f"blobs.{name} for one owner",
        why="blobs are not divided by owner: "
        f"call blobs.{name} of the state that the view was made of",
    )
