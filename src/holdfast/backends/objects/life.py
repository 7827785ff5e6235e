"""What is written about a ref in the index that is kept in objects, and how it is read.

A ref has a first record, made by conditional create, and changes with numbers, each made by
conditional create too: of two who change it at once, one finds its number taken and looks again.
Every time that a ref is put begins a life of its own, whose random name the changes carry: what a
late writer adds to a life that is over belongs to nobody.

The claim of the object key makes a ref valid. Whoever condemns a key creates the same object, so
one of the two wins. It is the last thing written when a ref is put and the first thing removed when
it is forgotten.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import msgspec

from holdfast.backends.objects.engine import Objects
from holdfast.backends.objects.errors import ENGINE
from holdfast.backends.objects.paths import Paths, digest
from holdfast.kernel.core.errors import CodecError, UnavailableError
from holdfast.kernel.storage.blob import BlobInfo
from holdfast.kernel.storage.blob_index import IndexedBlob

ATTEMPTS = 100
"""How often a call looks again because others changed the same ref meanwhile."""

_CHANGE = re.compile(r"([0-9a-f]+)\.(\d+)")
T = TypeVar("T")


class First(msgspec.Struct, frozen=True):
    """What was put."""

    life: str
    ref: str
    object_key: str
    size_bytes: int
    content_type: str
    sha256: str
    created_at: datetime
    expires_at: datetime
    hint: str

    @property
    def facts(self) -> tuple[str, int, str, str]:
        """What must be equal where the same is put again."""
        return self.object_key, self.size_bytes, self.content_type, self.sha256


class Change(msgspec.Struct, frozen=True):
    """What a ref is since: ``token`` makes it unlike a change that another writes."""

    expires_at: datetime | None
    taken_at: datetime | None
    hint: str | None
    token: str


class Claim(msgspec.Struct, frozen=True):
    """Who uses an object key; without a ref, nobody ever may."""

    object_key: str
    ref: str | None = None
    life: str | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """A ref as it was read."""

    first: First
    number: int
    numbers: tuple[int, ...]
    committed: bool
    expires_at: datetime | None
    taken_at: datetime | None
    hint: str | None

    def is_live(self, now: datetime) -> bool:
        """Whether the ref is valid."""
        expired = self.expires_at is not None and self.expires_at <= now
        return self.committed and self.taken_at is None and not expired

    @property
    def blob(self) -> IndexedBlob:
        """What the contract hands out."""
        first = self.first
        info = BlobInfo(
            first.size_bytes,
            first.content_type,
            first.sha256,
            first.created_at,
            self.expires_at,
            pinned=self.expires_at is None,
        )
        return IndexedBlob(first.ref, first.object_key, info)


class Lives:
    """Reads refs, and changes them one number at a time.

    ::

        life = await lives.read(digest(ref))
    """

    def __init__(self, engine: Objects, paths: Paths) -> None:
        self._engine = engine
        self._paths = paths

    async def read(self, ref_digest: str) -> Life | None:
        """A ref, taken or expired ones too; the claim is read last, being the first to go."""
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
            life = Life(
                first,
                0,
                numbers,
                claim is not None and claim.life == first.life,
                first.expires_at,
                None,
                first.hint,
            )
            if newest is None:
                return life
            if change is not None:
                last = _decode(change, Change)
                return replace(
                    life,
                    number=numbers[-1],
                    expires_at=last.expires_at,
                    taken_at=last.taken_at,
                    hint=last.hint,
                )
        raise too_many(ref_digest)

    async def claim(self, object_key: str) -> Claim | None:
        """Who uses an object key."""
        data = await self._engine.get(self._paths.claim(object_key))
        return None if data is None else _decode(data, Claim)

    async def first(self, ref: str) -> First | None:
        """What was put last under a ref, valid or not."""
        data = await self._engine.get(f"{self._paths.ref(digest(ref))}/0")
        return None if data is None else _decode(data, First)

    async def change(self, life: Life, change: Change) -> bool:
        """Make the next change; ``False`` where another did, or the life is over.

        That the number was free is not enough: an old one is free again after it was cleared away.
        It was free for the first time if the one before it is still there, since the oldest are
        cleared first, and if the claim is, since forgetting begins with it.
        """
        first = life.first
        folder = self._paths.ref(digest(first.ref))
        path = _path(folder, first.life, life.number + 1)
        if not await self._engine.create(path, msgspec.json.encode(change)):
            return False
        names, holds = await asyncio.gather(self._engine.names(folder), self._holds(life))
        numbers = _numbers(names, first.life)
        if not holds or (life.number and life.number not in numbers):
            await self._engine.delete([path])
            return False
        for number in numbers:
            if number < life.number:
                await self._engine.delete([_path(folder, first.life, number)])
        return True

    async def _holds(self, life: Life) -> bool:
        first = life.first
        found = await (self.claim(first.object_key) if life.committed else self.first(first.ref))
        return found is not None and found.life == first.life

    async def forget(self, life: Life) -> None:
        """Remove a ref: the claim, the record, the changes, and last what leads back here."""
        first = life.first
        ref_digest = digest(first.ref)
        if life.committed:
            await self._engine.delete([self._paths.claim(first.object_key)])
        folder = self._paths.ref(ref_digest)
        await self._engine.delete([f"{folder}/0"])
        await self._engine.delete([_path(folder, first.life, number) for number in life.numbers])
        if life.hint:
            await self._engine.delete([self._paths.hint(life.hint)])

    async def clear_leftovers(self, ref_digest: str) -> None:
        """Remove changes of lives that are over: a crash while forgetting leaves them."""
        folder = self._paths.ref(ref_digest)
        names = await self._engine.names(folder)
        data = await self._engine.get(f"{folder}/0")
        living = _decode(data, First).life if data else ""
        dead = [name for name in names if name != "0" and not name.startswith(f"{living}.")]
        await self._engine.delete([f"{folder}/{name}" for name in dead])


def too_many(key: str) -> UnavailableError:
    """Nobody gets through: try again later."""
    return UnavailableError(ENGINE, f"too many change {key!r} at once: try again")


def _path(folder: str, life: str, number: int) -> str:
    return f"{folder}/{life}.{number:010d}"


def _numbers(names: list[str], life: str) -> tuple[int, ...]:
    found = [_CHANGE.fullmatch(name) for name in names]
    return tuple(sorted(int(one[2]) for one in found if one and one[1] == life))


def _decode(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise CodecError(f"a record of the index of blobs cannot be read: {error}") from error


async def _none() -> None:
    return None
