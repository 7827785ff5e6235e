"""The index of blobs, in objects next to their bytes, for use without a database."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.errors import ENGINE
from holdfast.engines.objects.paths import Hint, Paths, digest, slot
from holdfast.engines.objects.ref_records import (
    ATTEMPTS,
    Change,
    Claim,
    First,
    RefRecord,
    RefRecords,
    too_many,
)
from holdfast.spi.blob_index import BlobFacts, BlobIndexStorage, condemned, taken_before
from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.errors import ConflictError, NotSupportedError

_DANGLING = timedelta(days=1)
"""How long a hint without a ref is kept: its writer may still be about to write the ref."""


_UNCLAIMED = timedelta(days=1)
"""After this time a ref that is to be pinned expires, if its writer dies before it pins it."""


class ObjectBlobIndex(BlobIndexStorage):
    """An index of blobs that needs only the conditional create of the object store.

    A call takes several requests in sequence: an index in a database is faster. Put each ref once,
    as ``ObjectBlobs`` does: a ref that is put again while it is being deleted may be deleted too.

    ::

        index = ObjectBlobIndex(engine, tenant="acme")
    """

    def __init__(self, engine: Objects, *, tenant: str = "default") -> None:
        if not engine.capabilities.conditional_create:
            raise NotSupportedError(
                ENGINE,
                "an index of blobs",
                why=f"{engine.location} does not create conditionally, so two writers would "
                "overwrite each other: keep the index in Postgres",
            )
        self._engine = engine
        self._paths = Paths(tenant)
        self._records = RefRecords(engine, self._paths)

    async def put(self, ref: str, facts: BlobFacts, ttl_seconds: float | None) -> BlobInfo:
        """Store a ref and return its metadata."""
        window = _UNCLAIMED if ttl_seconds is None else timedelta(seconds=ttl_seconds)
        now = self._engine.now()
        ref_digest = digest(ref)
        hint = Hint.at("due", now + window, ref_digest)
        first = First(
            secrets.token_hex(8),
            ref,
            *facts[:-1],
            created_at=now,
            expires_at=now + window,
            hint=hint.name,
            subject=facts.subject,
        )
        path = f"{self._paths.ref(ref_digest)}/0"
        for _ in range(ATTEMPTS):
            # Write the hint before the ref: a ref without a hint is never swept.
            await self._engine.put(self._paths.hint(hint.name), b"")
            if await self._engine.create(path, msgspec.json.encode(first)):
                try:
                    if ttl_seconds is None:
                        await self._pin_first(first)
                    await self._claim(first)
                except ConflictError:
                    await self._engine.delete([path])
                    await self._drop(hint.name)
                    raise
                if ttl_seconds is None:
                    await self._drop(hint.name)
                return _info(first, pinned=ttl_seconds is None)
            await self._drop(hint.name)
            again = await self._again(first)
            if again is not None:
                if ttl_seconds is None and not again.pinned:
                    await self.pin(ref)
                    again = replace(again, expires_at=None, pinned=True)
                return again
        raise too_many(ref)

    async def _pin_first(self, first: First) -> None:
        """Pin a ref before its claim makes it valid, so that it is never valid and unpinned.

        The first record still has an expiry, because earlier versions require one.
        """
        at = (first.expires_at, None, first.hint)
        record = RefRecord(first, 0, (), False, *at)  # noqa: FBT003 - not claimed yet
        if not await self._records.change(record, Change(None, None, None, secrets.token_hex(8))):
            raise taken_before(first.ref)

    async def _claim(self, first: First) -> None:
        """Make a ref valid. Raises if its object key belongs to another ref or is banned."""
        wanted = Claim(first.object_key, first.ref, first.life)
        path = self._paths.claim(first.object_key)
        for _ in range(ATTEMPTS):
            if await self._engine.create(path, msgspec.json.encode(wanted)):
                return
            found = await self._records.claim(first.object_key)
            if found is None:
                continue
            if found.ref is None:
                raise condemned(first.object_key)
            raise taken_before(first.ref)
        raise too_many(first.object_key)

    async def _again(self, first: First) -> BlobInfo | None:
        """Return the existing ref if its content is the same; ``None`` if it was deleted."""
        record = await self._records.read(digest(first.ref))
        if record is None:
            return None
        valid = replace(record, committed=True)
        if record.first.facts != first.facts or not valid.is_live(self._engine.now()):
            raise taken_before(first.ref)
        if not record.committed:
            # Another client is about to make it valid, or died before it did.
            await self._claim(record.first)
        return record.blob.info

    async def get(self, ref: str) -> IndexedBlob | None:
        """Return a blob that is neither taken nor expired, or ``None``."""
        record = await self._live(ref)
        return record.blob if record else None

    async def pin(self, ref: str) -> bool:
        """Remove the time to live of a blob. Returns whether it is live."""
        return await self._set_expiry(ref, None)

    async def unpin(self, ref: str, ttl_seconds: float) -> bool:
        """Set the time to live of a blob, from now. Returns whether it is live."""
        return await self._set_expiry(ref, ttl_seconds)

    async def take(self, ref: str) -> IndexedBlob | None:
        """Hide a live blob before it is deleted, and return it; ``None`` if it is not live."""
        for _ in range(ATTEMPTS):
            record = await self._live(ref)
            if record is None:
                return None
            if await self._take(record):
                return record.blob
        raise too_many(ref)

    async def take_expired(self, limit: int, retry_seconds: float) -> list[IndexedBlob]:
        """Take expired blobs, and those that were taken before but not deleted."""
        now = self._engine.now()
        retry = now - timedelta(seconds=retry_seconds)
        taken: list[IndexedBlob] = []
        if limit == 0:
            return taken
        batch: list[Hint] = []
        async with aclosing(self._due(now, retry)) as due:
            async for hint in due:
                batch.append(hint)
                if len(taken) + len(batch) == limit:
                    taken += await self._take_all(batch)
                    batch = []
                if len(taken) == limit:
                    break
        return taken + await self._take_all(batch)

    async def forget(self, refs: Sequence[str]) -> int:
        """Delete taken blobs from the index. Returns how many."""
        return sum(await self._engine.each(refs, self._forget))

    async def condemn(self, object_keys: Sequence[str]) -> Sequence[str]:
        """Ban the object keys that no ref uses: ``put`` refuses them. Returns these keys."""
        unused = await self._engine.each(object_keys, self._condemn)
        return [key for key, barred in zip(object_keys, unused, strict=True) if barred]

    async def _live(self, ref: str) -> RefRecord | None:
        record = await self._records.read(digest(ref))
        return record if record and record.is_live(self._engine.now()) else None

    async def _set_expiry(self, ref: str, window: float | None) -> bool:
        for _ in range(ATTEMPTS):
            record = await self._live(ref)
            if record is None:
                return False
            if window is None and record.expires_at is None:
                return True
            moment = None if window is None else self._engine.now() + timedelta(seconds=window)
            hint = Hint.at("due", moment, digest(ref)) if moment else None
            if await self._change(record, hint, expires_at=moment):
                return True
        raise too_many(ref)

    async def _take(self, record: RefRecord) -> bool:
        now = self._engine.now()
        hint = Hint.at("taken", now, digest(record.first.ref))
        return await self._change(record, hint, expires_at=record.expires_at, taken_at=now)

    async def _change(
        self,
        record: RefRecord,
        hint: Hint | None,
        *,
        expires_at: datetime | None,
        taken_at: datetime | None = None,
    ) -> bool:
        """Write the new hint, then the change, then delete the old hint: one hint always exists."""
        name = hint.name if hint else None
        if name:
            await self._engine.put(self._paths.hint(name), b"")
        change = Change(expires_at, taken_at, name, secrets.token_hex(8))
        made = await self._records.change(record, change)
        await self._drop(record.hint if made else name)
        return made

    async def _drop(self, hint: str | None) -> None:
        if hint:
            await self._engine.delete([self._paths.hint(hint)])

    async def _due(self, now: datetime, retry: datetime) -> AsyncGenerator[Hint, None]:
        """Yield the hints whose time has come, the earliest first."""
        until = {"due": now, "taken": retry}
        slots = {
            kind: set(await self._engine.folders(f"{self._paths.index}/{kind}")) for kind in until
        }
        for one in sorted(slots["due"] | slots["taken"]):
            if one > slot(now):
                return
            hints = [
                Hint.read(f"{kind}/{one}/{name}")
                for kind in until
                if one in slots[kind]
                for name in await self._engine.names(f"{self._paths.index}/{kind}/{one}")
            ]
            for hint in sorted(hints, key=lambda hint: hint.moment):
                if hint.moment <= until[hint.kind]:
                    yield hint

    async def _take_all(self, hints: list[Hint]) -> list[IndexedBlob]:
        found = await self._engine.each(hints, self._take_due)
        return [blob for blob in found if blob]

    async def _take_due(self, hint: Hint) -> IndexedBlob | None:
        record = await self._records.read(hint.ref_digest)
        if record is None or record.hint != hint.name:
            if hint.moment <= self._engine.now() - _DANGLING:
                if record is not None and not record.committed:
                    # It was pinned, and its writer died before the claim.
                    await self._records.forget(record)
                await self._records.clear_leftovers(hint.ref_digest)
                await self._drop(hint.name)
            return None
        return record.blob if await self._take(record) else None

    async def _forget(self, ref: str) -> bool:
        record = await self._records.read(digest(ref))
        if record is None or record.taken_at is None:
            return False
        await self._records.forget(record)
        return True

    async def _condemn(self, object_key: str) -> bool:
        """Ban an object key. Returns whether no ref uses it, now or later."""
        barred = msgspec.json.encode(Claim(object_key))
        for _ in range(ATTEMPTS):
            claim = await self._records.claim(object_key)
            if claim is None:
                if await self._engine.create(self._paths.claim(object_key), barred):
                    return True
                continue
            if claim.ref is None:
                return True
            first = await self._records.first(claim.ref)
            if first is not None and first.life == claim.life:
                return False
            # The ref is deleted. If its claim still exists, it was written after the delete, and
            # bars the key as a condemnation would.
            if await self._records.claim(object_key) == claim:
                return True
        raise too_many(object_key)


def _info(first: First, *, pinned: bool) -> BlobInfo:
    return BlobInfo(
        first.size_bytes,
        first.content_type,
        first.sha256,
        first.created_at,
        None if pinned else first.expires_at,
        pinned=pinned,
        subject=first.subject,
    )
