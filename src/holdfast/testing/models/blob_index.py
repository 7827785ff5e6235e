"""A naive ``BlobIndex``: a list of rows, each in one of two states."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.errors import ConflictError, NotFoundError


class NaiveBlobIndex:
    """Rows of refs, and rows of condemned keys."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.shared = shared
        self.tenant = tenant
        self.rows = shared.table("blob index")
        self.condemned = shared.table("condemned keys")

    def _mine(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["tenant"] == self.tenant]

    def _live(self, ref: str) -> dict[str, Any] | None:
        for row in self._mine():
            expires_at = row["expires_at"]
            if row["ref"] == ref and row["taken_at"] is None:
                return None if expires_at and expires_at <= self.shared.now else row
        return None

    async def put(self, ref: str, object_key: str, *, ttl_seconds: float, **facts: Any) -> BlobInfo:
        """A new row, unless an equal one is there."""
        if (self.tenant, object_key) in self.condemned:
            raise ConflictError("object", object_key)
        for row in self._mine():
            if row["ref"] == ref or row["object_key"] == object_key:
                same = (row["ref"], row["object_key"], row["facts"]) == (ref, object_key, facts)
                if same and self._live(ref):
                    return _blob(row).info
                raise ConflictError("blob", ref)
        row = {
            "tenant": self.tenant,
            "ref": ref,
            "object_key": object_key,
            "facts": facts,
            "created_at": self.shared.now,
            "expires_at": self.shared.now + timedelta(seconds=ttl_seconds),
            "taken_at": None,
        }
        self.rows.append(row)
        return _blob(row).info

    async def get(self, ref: str) -> IndexedBlob | None:
        """The live row."""
        row = self._live(ref)
        return _blob(row) if row else None

    async def pin(self, ref: str) -> None:
        """No expiry."""
        row = self._live(ref)
        if row is None:
            raise NotFoundError("blob", ref)
        row["expires_at"] = None

    async def unpin(self, ref: str, *, ttl_seconds: float) -> None:
        """A new expiry."""
        await self.pin(ref)
        for row in self._mine():
            if row["ref"] == ref:
                row["expires_at"] = self.shared.now + timedelta(seconds=ttl_seconds)

    async def take(self, ref: str) -> IndexedBlob | None:
        """Mark the live row."""
        row = self._live(ref)
        if row is None:
            return None
        row["taken_at"] = self.shared.now
        return _blob(row)

    async def take_expired(
        self, limit: int = 100, *, retry_seconds: float = 300
    ) -> list[IndexedBlob]:
        """Mark what is due, one by one, the earliest first."""
        taken: list[IndexedBlob] = []
        while len(taken) < limit:
            earliest: tuple[datetime, dict[str, Any]] | None = None
            for row in self._mine():
                due = row["taken_at"] or row["expires_at"]
                wait = timedelta(seconds=retry_seconds if row["taken_at"] else 0)
                if (
                    due is not None
                    and due + wait <= self.shared.now
                    and row["ref"] not in [blob.ref for blob in taken]
                    and (earliest is None or due < earliest[0])
                ):
                    earliest = due, row
            if earliest is None:
                break
            earliest[1]["taken_at"] = self.shared.now
            taken.append(_blob(earliest[1]))
        return taken

    async def forget(self, refs: list[str]) -> int:
        """Take out marked rows."""
        gone = [row for row in self._mine() if row["ref"] in refs and row["taken_at"]]
        for row in gone:
            self.rows.remove(row)
        return len(gone)

    async def condemn(self, object_keys: list[str]) -> list[str]:
        """The keys in no row."""
        used = [row["object_key"] for row in self._mine()]
        unused: list[str] = []
        for key in object_keys:
            if key not in used and key not in unused:
                unused.append(key)
                self.condemned.append((self.tenant, key))
        return unused


def _blob(row: dict[str, Any]) -> IndexedBlob:
    info = BlobInfo(
        **row["facts"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        pinned=row["expires_at"] is None,
    )
    return IndexedBlob(row["ref"], row["object_key"], info)
