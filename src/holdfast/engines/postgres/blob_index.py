"""The index of blobs, on Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.blob_index import BlobFacts, BlobIndexStorage
from holdfast.values.blobs import BlobInfo, IndexedBlob

_SQL = load("blob_index")


class PostgresBlobIndex(BlobIndexStorage):
    """Stores the refs of blobs in a table; ``place`` names the store that holds their bytes.

    ::

        index = PostgresBlobIndex(engine, tenant="acme")
    """

    def __init__(
        self, engine: Postgres, *, tenant: str = "default", place: str = "objects"
    ) -> None:
        self._engine = engine
        self._scope = (tenant, place)

    async def put(self, ref: str, facts: BlobFacts, ttl_seconds: float | None) -> BlobInfo:
        """Store a ref and return its metadata."""
        *what, subject = facts
        return info_of(await self._on_ref(_SQL["put"], ref, *what, ttl_seconds, subject, safe=True))

    async def get(self, ref: str) -> IndexedBlob | None:
        """Return a blob that is neither taken nor expired, or ``None``."""
        return _blob(await self._on_ref(_SQL["get"], ref, safe=True))

    async def pin(self, ref: str) -> bool:
        """Remove the time to live of a blob. Returns whether it is live."""
        return await self._on_ref(_SQL["pin"], ref, safe=True) is not None

    async def unpin(self, ref: str, ttl_seconds: float) -> bool:
        """Set the time to live of a blob, from now. Returns whether it is live."""
        return await self._on_ref(_SQL["unpin"], ref, ttl_seconds, safe=False) is not None

    async def take(self, ref: str) -> IndexedBlob | None:
        """Hide a live blob before it is deleted, and return it; ``None`` if it is not live."""
        return _blob(await self._on_ref(_SQL["take"], ref, safe=False))

    async def take_expired(self, limit: int, retry_seconds: float) -> list[IndexedBlob]:
        """Take expired blobs, and those that were taken before but not deleted."""
        # Safe: blobs that were taken by a call whose answer was lost are taken again later.
        rows = await self._engine.fetch(
            _SQL["take_expired"], *self._scope, limit, retry_seconds, safe=True
        )
        return [_indexed(row) for row in rows]

    async def forget(self, refs: Sequence[str]) -> int:
        """Delete taken blobs from the index. Returns how many."""
        count: int = await self._engine.fetchval(_SQL["forget"], *self._scope, refs, safe=False)
        return count

    async def condemn(self, object_keys: Sequence[str]) -> Sequence[str]:
        """Ban the object keys that no ref uses: ``put`` refuses them. Returns these keys."""
        rows = await self._engine.fetch(_SQL["condemn"], *self._scope, object_keys, safe=True)
        return [row["object_key"] for row in rows]

    async def _on_ref(self, sql: LiteralString, ref: str, *args: Any, safe: bool) -> Any:
        return await self._engine.fetchrow(sql, *self._scope, ref, *args, safe=safe)


def info_of(row: Any) -> BlobInfo:
    """Return the metadata of a blob from a row of the index."""
    return BlobInfo(
        row["size_bytes"],
        row["content_type"],
        row["sha256"],
        row["created_at"],
        row["expires_at"],
        pinned=row["expires_at"] is None,
        subject=row["subject"],
    )


def _indexed(row: Any) -> IndexedBlob:
    return IndexedBlob(row["ref"], row["object_key"], info_of(row))


def _blob(row: Any) -> IndexedBlob | None:
    return _indexed(row) if row else None
