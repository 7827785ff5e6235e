from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from holdfast.engines.inmemory.blob_index import InMemoryBlobIndex
from holdfast.spi.blob_index import BlobFacts
from holdfast.values.blobs import BlobInfo, IndexedBlob
from tests.mutants.registry import mutant


@mutant("blob_index", "test_a_pin_that_races_take_expired_wins_or_fails_loudly")
class PinRacesTheSweep(InMemoryBlobIndex):
    """A pin looks, waits, and then pins what may be taken."""

    async def pin(self, ref: str) -> bool:
        row = self._live(ref)
        if row is None:
            return False
        await asyncio.sleep(0)
        info = replace(row.blob.info, expires_at=None, pinned=True)
        self._data.rows[ref] = type(row)(row.facts, replace(row.blob, info=info))
        return True


@mutant(
    "blob_index",
    "test_a_condemned_key_can_never_be_put",
    "test_a_put_that_races_condemn_wins_or_fails_loudly",
    "test_the_index_is_still_there_after_a_reopen",
)
class CondemnedKeysComeBack(InMemoryBlobIndex):
    """What was swept as nobody's may get a ref afterwards."""

    async def condemn(self, object_keys: Sequence[str]) -> Sequence[str]:
        unused = await super().condemn(object_keys)
        self._data.condemned.clear()
        return unused


@mutant("blob_index", "test_what_was_taken_and_not_forgotten_is_taken_again_after_retry_seconds")
class TakenIsNeverTakenAgain(InMemoryBlobIndex):
    """A crash between the removal of the bytes and of the row leaves the row for ever."""

    async def take_expired(self, limit: int, retry_seconds: float) -> list[IndexedBlob]:
        taken = {ref for ref, row in self._data.rows.items() if row.taken_at}
        due = await super().take_expired(limit, retry_seconds)
        return [blob for blob in due if blob.ref not in taken]


@mutant("blob_index", "test_forget_leaves_alone_what_was_not_taken")
class ForgetDropsAnything(InMemoryBlobIndex):
    """A live ref can be forgotten, and its bytes with it."""

    async def forget(self, refs: Sequence[str]) -> int:
        for ref in refs:
            await self.take(ref)
        return await super().forget(refs)


@mutant("blob_index", "test_putting_the_same_again_changes_nothing")
class RetryStartsTheWindowAgain(InMemoryBlobIndex):
    """A repeated put of the same blob gives it a new time to live."""

    async def put(self, ref: str, facts: BlobFacts, ttl_seconds: float | None) -> BlobInfo:
        info = await super().put(ref, facts, ttl_seconds)
        if ttl_seconds is not None and not info.pinned:
            await self.unpin(ref, ttl_seconds)
        return info
