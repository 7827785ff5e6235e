"""The metadata of blobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

MAX_CHUNK_BYTES = 1 << 20
"""The largest chunk that ``open`` yields."""


@dataclass(frozen=True, slots=True)
class IndexedBlob:
    """A ref, the key of its bytes in the object store, and their metadata.

    >>> from datetime import UTC, datetime
    >>> info = BlobInfo(3, "text/plain", "9f86d0…", datetime.now(UTC), None, pinned=True)
    >>> IndexedBlob("r1", "blobs/4f", info).object_key
    'blobs/4f'
    """

    ref: str
    object_key: str
    info: BlobInfo


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """The metadata of a blob.

    >>> from datetime import UTC
    >>> when = datetime(2030, 1, 1, tzinfo=UTC)
    >>> BlobInfo(3, "text/plain", "9f86d0…", when, expires_at=None, pinned=True).size_bytes
    3
    """

    size_bytes: int
    content_type: str
    sha256: str
    """The digest of the bytes, as lower-case hexadecimal."""

    created_at: datetime
    expires_at: datetime | None
    """When the blob expires; ``None`` while it is pinned."""

    pinned: bool
    subject: str = ""
    """Id of the person whom the content is about or from: ``erase(subject=)`` deletes it."""
