"""The index of blobs whose bytes are in an object store: refs, lifetimes, pins."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.contracts.blob_checks import check_content_type
from holdfast.spi.blob_index import RETRY_SECONDS, BlobFacts, BlobIndexStorage
from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.checks import check_count, check_id, check_ids, check_seconds, check_text
from holdfast.values.errors import InvalidInputError, NotFoundError


class BlobIndex:
    """The index that a durable engine keeps for an object store.

    It keeps the two stores consistent. A writer uploads the bytes first and then calls ``put``: a
    crash in between leaves bytes without a ref, never a ref without bytes. To delete, a process
    first calls ``take`` or ``take_expired``, which hides the ref, then deletes the bytes, then
    calls ``forget``: a crash in between leaves a taken blob, which ``take_expired`` returns again
    later. To find bytes without a ref, a sweep lists the objects and passes their keys to
    ``condemn``: the keys that it returns may be deleted, because no ``put`` can use them any more.

    Promises:

    - a blob comes back as it was put
    - an unknown ref is none
    - putting the same again changes nothing
    - putting a ref again with other facts is a conflict
    - an object key belongs to one ref
    - of many who put one ref with different facts one wins
    - facts that are not valid are refused and nothing is written
    - a ref or key that is not an id is refused
    - a blob expires when its ttl_seconds have passed
    - a pinned blob never expires
    - pin is idempotent
    - unpin starts a full new window
    - pin and unpin of an unknown or expired ref are not found errors
    - take hides the blob and returns it
    - take of an unknown or expired ref is none
    - one of many takers gets the blob
    - pin of a taken ref is a not found error
    - a taken ref cannot be put again
    - take_expired returns what has expired, the earliest first, and nothing else
    - take_expired returns at most limit
    - a limit of zero is an empty result and a negative one is refused
    - what was taken and not forgotten is taken again after retry_seconds
    - a pin that races take_expired wins or fails loudly
    - forget removes what was taken and counts it
    - forget leaves alone what was not taken
    - condemn returns the keys that no ref uses
    - a condemned key can never be put
    - condemn is idempotent
    - a put that races condemn wins or fails loudly
    - one tenant never sees another's blobs
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - the index is still there after a reopen
    """

    def __init__(self, storage: BlobIndexStorage) -> None:
        self._storage = storage

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
        """Create a ref to uploaded bytes. It expires after ``ttl_seconds``, by the index's clock.

        ::

            info = await index.put(ref, key, size_bytes=3, content_type="text/plain",
                                   sha256=digest, ttl_seconds=86400)
        """
        facts = BlobFacts(
            check_id("object_key", object_key),
            check_count("size_bytes", size_bytes),
            check_content_type(content_type),
            check_sha256(sha256),
        )
        window = check_seconds("ttl_seconds", ttl_seconds)
        return await self._storage.put(check_id("ref", ref), facts, window)

    async def get(self, ref: str) -> IndexedBlob | None:
        """Return a blob; ``None`` if it does not exist, has expired or was taken.

        ::

            blob = await index.get(ref)
        """
        return await self._storage.get(check_id("ref", ref))

    async def pin(self, ref: str) -> None:
        """Keep a blob until it is unpinned or taken. Raises ``NotFoundError`` if there is none.

        ::

            await index.pin(ref)
        """
        if not await self._storage.pin(check_id("ref", ref)):
            raise NotFoundError("blob", ref)

    async def unpin(self, ref: str, *, ttl_seconds: float) -> None:
        """Let a blob expire ``ttl_seconds`` from now.

        ::

            await index.unpin(ref, ttl_seconds=86400)
        """
        window = check_seconds("ttl_seconds", ttl_seconds)
        if not await self._storage.unpin(check_id("ref", ref), window):
            raise NotFoundError("blob", ref)

    async def take(self, ref: str) -> IndexedBlob | None:
        """Hide a blob, pinned or not, so that its bytes can be deleted. Returns it, or ``None``.

        ::

            if blob := await index.take(ref):
                await objects.delete(blob.object_key)
                await index.forget([ref])
        """
        return await self._storage.take(check_id("ref", ref))

    async def take_expired(
        self, limit: int = 100, *, retry_seconds: float = RETRY_SECONDS
    ) -> list[IndexedBlob]:
        """Take expired blobs, and those that were taken ``retry_seconds`` ago and not forgotten.

        ::

            for blob in await index.take_expired():
                await objects.delete(blob.object_key)
        """
        retry = check_seconds("retry_seconds", retry_seconds)
        return await self._storage.take_expired(check_count("limit", limit), retry)

    async def forget(self, refs: Sequence[str]) -> int:
        """Delete taken blobs from the index, after their bytes. Returns how many there were.

        ::

            await index.forget([blob.ref for blob in taken])
        """
        return await self._storage.forget(list(dict.fromkeys(check_ids("refs", refs))))

    async def condemn(self, object_keys: Sequence[str]) -> list[str]:
        """Return the keys that no ref uses. From then on no ``put`` can use them.

        Pass only objects that are older than an upload can take: an upload whose key was condemned
        fails when it calls ``put``.

        ::

            for key in await index.condemn(old_keys):
                await objects.delete(key)
        """
        keys = list(dict.fromkeys(check_ids("object_keys", object_keys)))
        unused = set(await self._storage.condemn(keys))
        return [key for key in keys if key in unused]


def check_sha256(value: object) -> str:
    """Check a SHA-256 digest: 64 lower-case hexadecimal digits.

    >>> check_sha256("0" * 64) == "0" * 64
    True
    """
    text = check_text("sha256", value)
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise InvalidInputError("sha256", "must be 64 lower-case hexadecimal digits")
    return text
