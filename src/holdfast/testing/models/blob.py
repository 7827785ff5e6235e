"""A naive ``Blobs``: a list of rows with the bytes in them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable
from datetime import timedelta
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.blobs import BlobInfo
from holdfast.values.errors import NotFoundError


class NaiveBlobs:
    """Rows that stay in the list until they are deleted or swept."""

    def __init__(
        self, shared: Shared, *, tenant: str = "default", ttl_seconds: float = 86_400
    ) -> None:
        self.shared = shared
        self.tenant = tenant
        self.ttl = timedelta(seconds=ttl_seconds)
        self.rows = shared.table("blobs")
        self.refs = shared.table("blob refs")

    def _expired(self, row: dict[str, Any]) -> bool:
        return row["expires_at"] is not None and row["expires_at"] <= self.shared.now

    def _find(self, ref: str) -> dict[str, Any]:
        for row in self.rows:
            if row["tenant"] == self.tenant and row["ref"] == ref and not self._expired(row):
                found: dict[str, Any] = row
                return found
        raise NotFoundError("blob", ref)

    async def store(
        self,
        data: bytes | str,
        *,
        content_type: str = "application/octet-stream",
        pinned: bool = False,
        ttl_seconds: float | None = None,
        subject: str | None = None,
    ) -> str:
        """A new row."""
        ttl = self.ttl if ttl_seconds is None else timedelta(seconds=ttl_seconds)
        self.refs.append(None)
        self.rows.append(
            {
                "tenant": self.tenant,
                "ref": f"ref {len(self.refs)}",
                "data": data.encode() if isinstance(data, str) else data,
                "type": content_type,
                "subject": subject or "",
                "created_at": self.shared.now,
                "expires_at": None if pinned else self.shared.now + ttl,
            }
        )
        return f"ref {len(self.refs)}"

    async def store_stream(self, chunks: AsyncIterable[bytes], **facts: Any) -> str:
        """All chunks, then a new row."""
        data = b""
        async for chunk in chunks:
            data = data + chunk
        return await self.store(data, **facts)

    async def resolve(self, ref: str) -> bytes:
        """The row's bytes."""
        data: bytes = self._find(ref)["data"]
        return data

    async def open(
        self, ref: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Byte by byte."""
        for at, byte in enumerate(self._find(ref)["data"]):
            if at >= offset and (length is None or at < offset + length):
                yield bytes([byte])

    async def pin(self, ref: str) -> None:
        """No expiry."""
        self._find(ref)["expires_at"] = None

    async def unpin(self, ref: str) -> None:
        """A new expiry."""
        self._find(ref)["expires_at"] = self.shared.now + self.ttl

    async def stat(self, ref: str) -> BlobInfo:
        """The row without its bytes."""
        row = self._find(ref)
        return BlobInfo(
            size_bytes=len(row["data"]),
            content_type=row["type"],
            sha256=hashlib.sha256(row["data"]).hexdigest(),
            created_at=row["created_at"],
            expires_at=row["expires_at"],
            pinned=row["expires_at"] is None,
            subject=row["subject"],
        )

    async def delete(self, ref: str) -> bool:
        """Take the row out."""
        try:
            self.rows.remove(self._find(ref))
        except NotFoundError:
            return False
        return True

    async def sweep(self) -> int:
        """Take out all rows that have expired."""
        expired = [row for row in self.rows if row["tenant"] == self.tenant and self._expired(row)]
        for row in expired:
            self.rows.remove(row)
        return len(expired)
