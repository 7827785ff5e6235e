"""What is known about blobs, in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_count, check_id, check_ids, check_seconds
from holdfast.kernel.core.errors import ConflictError, NotFoundError
from holdfast.kernel.storage.blob import BlobInfo, check_content_type
from holdfast.kernel.storage.blob_index import BlobIndex, IndexedBlob, check_sha256


@dataclass
class _Row:
    blob: IndexedBlob
    taken_at: datetime | None = None


@dataclass
class _Data:
    rows: dict[str, _Row] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    condemned: dict[str, None] = field(default_factory=dict)


class InMemoryBlobIndex(BlobIndex):
    """``BlobIndex`` in dicts, by ref and by object key.

    >>> index = InMemoryBlobIndex(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

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
        now = self._engine.now()
        info = BlobInfo(
            check_count("size_bytes", size_bytes),
            check_content_type(content_type),
            check_sha256(sha256),
            created_at=now,
            expires_at=now + timedelta(seconds=ttl_seconds),
            pinned=False,
        )
        if object_key in self._data.condemned:
            raise ConflictError(
                "object", object_key, "the bytes were swept as nobody's: upload them again"
            )
        if ref in self._data.rows or object_key in self._data.refs:
            return self._again(IndexedBlob(ref, object_key, info))
        self._data.rows[ref] = _Row(IndexedBlob(ref, object_key, info))
        self._data.refs[object_key] = ref
        return info

    def _again(self, blob: IndexedBlob) -> BlobInfo:
        live = self._live(blob.ref)
        if live is None or _facts(live.blob) != _facts(blob):
            raise ConflictError(
                "blob", blob.ref, f"the ref {blob.ref!r} or its object is taken: use new ones"
            )
        return live.blob.info

    async def get(self, ref: str) -> IndexedBlob | None:
        """A live blob."""
        row = self._live(ref)
        return row.blob if row else None

    async def pin(self, ref: str) -> None:
        """Keep a blob."""
        self._set_expiry(ref, None)

    async def unpin(self, ref: str, *, ttl_seconds: float) -> None:
        """Let a blob expire."""
        window = timedelta(seconds=check_seconds("ttl_seconds", ttl_seconds))
        self._set_expiry(ref, self._engine.now() + window)

    async def take(self, ref: str) -> IndexedBlob | None:
        """Hide a live blob."""
        row = self._live(ref)
        if row is None:
            return None
        row.taken_at = self._engine.now()
        return row.blob

    async def take_expired(
        self, limit: int = 100, *, retry_seconds: float = 300
    ) -> list[IndexedBlob]:
        """Expired blobs, and those whose removal was not finished."""
        check_count("limit", limit)
        now = self._engine.now()
        retry = now - timedelta(seconds=check_seconds("retry_seconds", retry_seconds))
        due: list[tuple[datetime, _Row]] = []
        for row in self._data.rows.values():
            expires_at = row.blob.info.expires_at
            if row.taken_at is not None:
                if row.taken_at <= retry:
                    due.append((row.taken_at, row))
            elif expires_at is not None and expires_at <= now:
                due.append((expires_at, row))
        due.sort(key=lambda one: one[0])
        for _, row in due[:limit]:
            row.taken_at = now
        return [row.blob for _, row in due[:limit]]

    async def forget(self, refs: Sequence[str]) -> int:
        """Drop taken blobs."""
        known = {ref: self._data.rows.get(ref) for ref in check_ids("refs", refs)}
        taken = {ref: row for ref, row in known.items() if row and row.taken_at}
        for ref, row in taken.items():
            del self._data.rows[ref]
            del self._data.refs[row.blob.object_key]
        return len(taken)

    async def condemn(self, object_keys: Sequence[str]) -> list[str]:
        """The keys that no ref uses, barred."""
        keys = check_ids("object_keys", object_keys)
        unused = [key for key in dict.fromkeys(keys) if key not in self._data.refs]
        self._data.condemned.update(dict.fromkeys(unused))
        return unused

    def _live(self, ref: str) -> _Row | None:
        row = self._data.rows.get(check_id("ref", ref))
        if row is None or row.taken_at is not None:
            return None
        expires_at = row.blob.info.expires_at
        return None if expires_at and expires_at <= self._engine.now() else row

    def _set_expiry(self, ref: str, expires_at: datetime | None) -> None:
        row = self._live(ref)
        if row is None:
            raise NotFoundError("blob", ref)
        info = replace(row.blob.info, expires_at=expires_at, pinned=expires_at is None)
        row.blob = replace(row.blob, info=info)


def _facts(blob: IndexedBlob) -> tuple[str, int, str, str]:
    info = blob.info
    return blob.object_key, info.size_bytes, info.content_type, info.sha256
