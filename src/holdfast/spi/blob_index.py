"""The index of blobs whose bytes are in an object store, as an engine stores it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.errors import ConflictError

RETRY_SECONDS = 300.0
"""How long a blob that was taken for deletion is hidden before it may be taken again."""


class BlobFacts(NamedTuple):
    """The object key of a blob's bytes, and their metadata."""

    object_key: str
    size_bytes: int
    content_type: str
    sha256: str
    subject: str = ""


class BlobIndexStorage(Protocol):
    """The index of one tenant. The caller checks all arguments.

    A blob that has expired, or was taken for deletion, is not live.
    """

    @abstractmethod
    async def put(self, ref: str, facts: BlobFacts, ttl_seconds: float | None) -> BlobInfo:
        """Store a ref and return its info; if a live ref has the same facts, return that one's.

        Without ``ttl_seconds`` the blob is pinned.

        Raises ``condemned(object_key)``, or ``taken_before(ref)`` if another blob has the ref or
        the object.
        """

    @abstractmethod
    async def get(self, ref: str) -> IndexedBlob | None:
        """Return the blob if it is live, else ``None``."""

    @abstractmethod
    async def pin(self, ref: str) -> bool:
        """Remove the time to live. Returns whether the blob is live."""

    @abstractmethod
    async def unpin(self, ref: str, ttl_seconds: float) -> bool:
        """Set the time to live, from now. Returns whether the blob is live."""

    @abstractmethod
    async def take(self, ref: str) -> IndexedBlob | None:
        """Hide a live blob before its deletion, and return it. Only one caller gets it."""

    @abstractmethod
    async def take_expired(self, limit: int, retry_seconds: float) -> list[IndexedBlob]:
        """Hide and return expired blobs, earliest first.

        It returns a blob again if it is not deleted ``retry_seconds`` after it was returned.
        """

    @abstractmethod
    async def forget(self, refs: Sequence[str]) -> int:
        """Delete the index entries of taken blobs. Returns how many there were."""

    @abstractmethod
    async def condemn(self, object_keys: Sequence[str]) -> Sequence[str]:
        """Return the keys that no ref uses, in any order. From now on ``put`` refuses them."""


def condemned(object_key: str) -> ConflictError:
    """Return the error of a ``put`` whose bytes were deleted because no ref used them.

    >>> str(condemned("blobs/4f"))
    "the bytes were swept as nobody's: upload them again"
    """
    text = "the bytes were swept as nobody's: upload them again"
    return ConflictError("object", object_key, text)


def taken_before(ref: str) -> ConflictError:
    """Return the error of a ``put`` whose ref or object key another blob already uses.

    >>> str(taken_before("r1"))
    "the ref 'r1' or its object is taken: use new ones"
    """
    return ConflictError("blob", ref, f"the ref {ref!r} or its object is taken: use new ones")
