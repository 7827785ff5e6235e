"""What is known about blobs, on Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_count, check_id, check_ids, check_seconds
from holdfast.kernel.core.errors import NotFoundError
from holdfast.kernel.storage.blob import BlobInfo, check_content_type
from holdfast.kernel.storage.blob_index import BlobIndex, IndexedBlob, check_sha256

_SQL = load("blob_index")


class PostgresBlobIndex(BlobIndex):
    """``BlobIndex`` in a table; ``place`` names the store that holds the bytes.

    ::

        index = PostgresBlobIndex(engine, tenant="acme")
    """

    def __init__(
        self, engine: Postgres, *, tenant: str = "default", place: str = "objects"
    ) -> None:
        self._engine = engine
        self._scope = (tenant, place)

    async def put(
        self,
        ref: str,
        object_key: str,
        *,
        size_bytes: int,
        content_type: str,
        sha256: str,
        ttl_seconds: float,
    ) -> BlobInfo:
        """Make a ref to bytes that are uploaded."""
        check_id("ref", ref)
        check_id("object_key", object_key)
        check_seconds("ttl_seconds", ttl_seconds)
        row = await self._engine.fetchrow(
            _SQL["put"],
            *self._scope,
            ref,
            object_key,
            check_count("size_bytes", size_bytes),
            check_content_type(content_type),
            check_sha256(sha256),
            ttl_seconds,
            safe=True,
        )
        return info_of(row)

    async def get(self, ref: str) -> IndexedBlob | None:
        """A live blob."""
        return _blob(await self._on_ref(_SQL["get"], ref, safe=True))

    async def pin(self, ref: str) -> None:
        """Keep a blob."""
        if await self._on_ref(_SQL["pin"], ref, safe=True) is None:
            raise NotFoundError("blob", ref)

    async def unpin(self, ref: str, *, ttl_seconds: float) -> None:
        """Let a blob expire."""
        window = check_seconds("ttl_seconds", ttl_seconds)
        if await self._on_ref(_SQL["unpin"], ref, window, safe=False) is None:
            raise NotFoundError("blob", ref)

    async def take(self, ref: str) -> IndexedBlob | None:
        """Hide a live blob."""
        return _blob(await self._on_ref(_SQL["take"], ref, safe=False))

    async def take_expired(
        self, limit: int = 100, *, retry_seconds: float = 300
    ) -> list[IndexedBlob]:
        """Expired blobs, and those whose removal was not finished."""
        check_count("limit", limit)
        check_seconds("retry_seconds", retry_seconds)
        # Safe: what a lost answer had taken is handed out again later.
        rows = await self._engine.fetch(
            _SQL["take_expired"], *self._scope, limit, retry_seconds, safe=True
        )
        return [_indexed(row) for row in rows]

    async def forget(self, refs: Sequence[str]) -> int:
        """Drop taken blobs."""
        known = check_ids("refs", refs)
        count: int = await self._engine.fetchval(_SQL["forget"], *self._scope, known, safe=False)
        return count

    async def condemn(self, object_keys: Sequence[str]) -> list[str]:
        """The keys that no ref uses, barred."""
        keys = list(dict.fromkeys(check_ids("object_keys", object_keys)))
        rows = await self._engine.fetch(_SQL["condemn"], *self._scope, keys, safe=True)
        unused = {row["object_key"] for row in rows}
        return [key for key in keys if key in unused]

    async def _on_ref(self, sql: LiteralString, ref: str, *args: Any, safe: bool) -> Any:
        check_id("ref", ref)
        return await self._engine.fetchrow(sql, *self._scope, ref, *args, safe=safe)


def info_of(row: Any) -> BlobInfo:
    """What a row of the index says about a blob."""
    return BlobInfo(
        row["size_bytes"],
        row["content_type"],
        row["sha256"],
        row["created_at"],
        row["expires_at"],
        pinned=row["expires_at"] is None,
    )


def _indexed(row: Any) -> IndexedBlob:
    return IndexedBlob(row["ref"], row["object_key"], info_of(row))


def _blob(row: Any) -> IndexedBlob | None:
    return _indexed(row) if row else None
