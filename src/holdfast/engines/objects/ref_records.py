"""The records of a ref in the index that is stored as objects.

A ref has a first record and numbered changes, each written by conditional create. If two clients
change a ref at once, one of them finds its number taken, reads the ref again and retries.
Every put of a ref gets a random id, its ``life``. The names of the changes contain it, so that a
change which a late writer adds after the ref was deleted is ignored.

The claim of the object key makes a ref valid. A client that condemns an object key creates the same
object, so only one of the two succeeds. The claim is written last when a ref is put, and is deleted
first when the ref is deleted.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import msgspec

from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.errors import ENGINE
from holdfast.engines.objects.paths import Paths, digest
from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.errors import CodecError, UnavailableError

ATTEMPTS = 100
"""How often a call retries because others changed the same ref meanwhile."""

_CHANGE = re.compile(r"([0-9a-f]+)\.(\d+)")
T = TypeVar("T")


class First(msgspec.Struct, frozen=True):
    """The first record of a ref, as it was put. The field names are part of the stored format."""

    life: str
    ref: str
    object_key: str
    size_bytes: int
    content_type: str
    sha256: str
    created_at: datetime
    expires_at: datetime
    hint: str
    subject: str = ""

    @property
    def facts(self) -> tuple[str, int, str, str, str]:
        """The values that must be equal if the same ref is put again."""
        return self.object_key, self.size_bytes, self.content_type, self.sha256, self.subject


class Change(msgspec.Struct, frozen=True):
    """A change of a ref: its new values. The random ``token`` makes every change unique."""

    expires_at: datetime | None
    taken_at: datetime | None
    hint: str | None
    token: str


class Claim(msgspec.Struct, frozen=True):
    """The ref that uses an object key. Without a ref, the key is banned: no ref may use it."""

    object_key: str
    ref: str | None = None
    life: str | None = None


@dataclass(frozen=True, slots=True)
class RefRecord:
    """A ref as it was read: its first record with the last change applied."""

    first: First
    number: int
    numbers: tuple[int, ...]
    committed: bool
    expires_at: datetime | None
    taken_at: datetime | None
    hint: str | None

    def is_live(self, now: datetime) -> bool:
        """Return whether the ref is valid."""
        expired = self.expires_at is not None and self.expires_at <= now
        return self.committed and self.taken_at is None and not expired

    @property
    def blob(self) -> IndexedBlob:
        """Return the ref as an ``IndexedBlob``."""
        first = self.first
        info = BlobInfo(
            first.size_bytes,
            first.content_type,
            first.sha256,
            first.created_at,
            self.expires_at,
            pinned=self.expires_at is None,
            subject=first.subject,
        )
        return IndexedBlob(first.ref, first.object_key, info)


class RefRecords:
    """Reads and deletes the records of refs, and adds changes, one number at a time.

    ::

        record = await records.read(digest(ref))
    """

    def __init__(self, engine: Objects, paths: Paths) -> None:
        self._engine = engine
        self._paths = paths

    async def read(self, ref_digest: str) -> RefRecord | None:
        """Return a ref, also one that is taken or expired; ``None`` if it does not exist.

        The claim is read last, since it is deleted first.
        """
        folder = self._paths.ref(ref_digest)
        for _ in range(ATTEMPTS):
            data, names = await asyncio.gather(
                self._engine.get(f"{folder}/0"), self._engine.names(folder)
            )
            if data is None:
                return None
            first = _decode(data, First)
            numbers = _numbers(names, first.life)
            newest = _path(folder, first.life, numbers[-1]) if numbers else None
            change, claim = await asyncio.gather(
                self._engine.get(newest) if newest else _none(),
                self.claim(first.object_key),
            )
            record = RefRecord(
                first,
                0,
                numbers,
                claim is not None and claim.life == first.life,
                first.expires_at,
                None,
                first.hint,
            )
            if newest is None:
                return record
            if change is not None:
                last = _decode(change, Change)
                return replace(
                    record,
                    number=numbers[-1],
                    expires_at=last.expires_at,
                    taken_at=last.taken_at,
                    hint=last.hint,
                )
        raise too_many(ref_digest)

    async def claim(self, object_key: str) -> Claim | None:
        """Return the claim of an object key, or ``None``."""
        data = await self._engine.get(self._paths.claim(object_key))
        return None if data is None else _decode(data, Claim)

    async def first(self, ref: str) -> First | None:
        """Return the first record of a ref, valid or not."""
        data = await self._engine.get(f"{self._paths.ref(digest(ref))}/0")
        return None if data is None else _decode(data, First)

    async def change(self, record: RefRecord, change: Change) -> bool:
        """Write the next change. Returns ``False`` if another client did, or deleted the ref.

        It is not enough that the number was free: the number of a deleted change is free again.
        It was never used before if the change before it still exists, since the oldest changes are
        deleted first, and if the claim exists, since ``forget`` deletes that first.
        """
        first = record.first
        folder = self._paths.ref(digest(first.ref))
        path = _path(folder, first.life, record.number + 1)
        if not await self._engine.create(path, msgspec.json.encode(change)):
            return False
        names, holds = await asyncio.gather(self._engine.names(folder), self._holds(record))
        numbers = _numbers(names, first.life)
        if not holds or (record.number and record.number not in numbers):
            await self._engine.delete([path])
            return False
        for number in numbers:
            if number < record.number:
                await self._engine.delete([_path(folder, first.life, number)])
        return True

    async def _holds(self, record: RefRecord) -> bool:
        first = record.first
        found = await (self.claim(first.object_key) if record.committed else self.first(first.ref))
        return found is not None and found.life == first.life

    async def forget(self, record: RefRecord) -> None:
        """Delete a ref: the claim, the first record, the changes, and last the hint."""
        first = record.first
        ref_digest = digest(first.ref)
        if record.committed:
            await self._engine.delete([self._paths.claim(first.object_key)])
        folder = self._paths.ref(ref_digest)
        await self._engine.delete([f"{folder}/0"])
        await self._engine.delete([_path(folder, first.life, number) for number in record.numbers])
        if record.hint:
            await self._engine.delete([self._paths.hint(record.hint)])

    async def clear_leftovers(self, ref_digest: str) -> None:
        """Delete changes of earlier puts, which a crash in ``forget`` leaves behind."""
        folder = self._paths.ref(ref_digest)
        names = await self._engine.names(folder)
        data = await self._engine.get(f"{folder}/0")
        living = _decode(data, First).life if data else ""
        dead = [name for name in names if name != "0" and not name.startswith(f"{living}.")]
        await self._engine.delete([f"{folder}/{name}" for name in dead])


def too_many(key: str) -> UnavailableError:
    """Return the error for too many retries."""
    return UnavailableError(ENGINE, f"too many concurrent changes of {key!r}: try again")


def _path(folder: str, life: str, number: int) -> str:
    return f"{folder}/{life}.{number:010d}"


def _numbers(names: list[str], life: str) -> tuple[int, ...]:
    found = [_CHANGE.fullmatch(name) for name in names]
    return tuple(sorted(int(one[2]) for one in found if one and one[1] == life))


def _decode(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise CodecError(f"cannot decode a record of the blob index: {error}") from error


async def _none() -> None:
    return None
