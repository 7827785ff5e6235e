"""The index of blobs, in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.blob_index import BlobFacts, BlobIndexStorage, condemned, taken_before
from holdfast.values.blobs import BlobInfo, IndexedBlob


@dataclass
class _Row:
    facts: BlobFacts
    blob: IndexedBlob
    taken_at: datetime | None = None


@dataclass
class _Data:
    rows: dict[str, _Row] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    condemned: dict[str, None] = field(default_factory=dict)


class InMemoryBlobIndex(BlobIndexStorage):
    """Stores the refs of blobs in dicts, by ref and by object key.

    >>> index = InMemoryBlobIndex(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def put(self, ref: str, facts: BlobFacts, ttl_seconds: float | None) -> BlobInfo:
        """Store a ref and return its metadata."""
        now = self._engine.now()
        info = BlobInfo(
            facts.size_bytes,
            facts.content_type,
            facts.sha256,
            created_at=now,
            expires_at=None if ttl_seconds is None else now + timedelta(seconds=ttl_seconds),
            pinned=ttl_seconds is None,
            subject=facts.subject,
        )
        if facts.object_key in self._data.condemned:
            raise condemned(facts.object_key)
        if ref in self._data.rows or facts.object_key in self._data.refs:
            live = self._live(ref)
            if live is None or live.facts != facts:
                raise taken_before(ref)
            return live.blob.info
        self._data.rows[ref] = _Row(facts, IndexedBlob(ref, facts.object_key, info))
        self._data.refs[facts.object_key] = ref
        return info

    async def get(self, ref: str) -> IndexedBlob | None:
        """Return a blob that is neither taken nor expired, or ``None``."""
        row = self._live(ref)
        return row.blob if row else None

    async def pin(self, ref: str) -> bool:
        """Remove the time to live of a blob. Returns whether it is live."""
        return self._set_expiry(ref, None)

    async def unpin(self, ref: str, ttl_seconds: float) -> bool:
        """Set the time to live of a blob, from now. Returns whether it is live."""
        return self._set_expiry(ref, self._engine.now() + timedelta(seconds=ttl_seconds))

    async def take(self, ref: str) -> IndexedBlob | None:
        """Hide a live blob before it is deleted, and return it; ``None`` if it is not live."""
        row = self._live(ref)
        if row is None:
            return None
        row.taken_at = self._engine.now()
        return row.blob

    async def take_expired(self, limit: int, retry_seconds: float) -> list[IndexedBlob]:
        """Take expired blobs, and those that were taken before but not deleted."""
        now = self._engine.now()
        retry = now - timedelta(seconds=retry_seconds)
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
        """Delete taken blobs from the index. Returns how many."""
        known = {ref: self._data.rows.get(ref) for ref in refs}
        taken = {ref: row for ref, row in known.items() if row and row.taken_at}
        for ref, row in taken.items():
            del self._data.rows[ref]
            del self._data.refs[row.blob.object_key]
        return len(taken)

    async def condemn(self, object_keys: Sequence[str]) -> Sequence[str]:
        """Ban the object keys that no ref uses: ``put`` refuses them. Returns these keys."""
        unused = [key for key in object_keys if key not in self._data.refs]
        self._data.condemned.update(dict.fromkeys(unused))
        return unused

    def _live(self, ref: str) -> _Row | None:
        row = self._data.rows.get(ref)
        if row is None or row.taken_at is not None:
            return None
        expires_at = row.blob.info.expires_at
        return None if expires_at and expires_at <= self._engine.now() else row

    def _set_expiry(self, ref: str, expires_at: datetime | None) -> bool:
        row = self._live(ref)
        if row is None:
            return False
        info = replace(row.blob.info, expires_at=expires_at, pinned=expires_at is None)
        row.blob = replace(row.blob, info=info)
        return True
