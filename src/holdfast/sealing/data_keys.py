"""The data keys of one tenant: created on first use, and cached unwrapped for up to a minute."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from holdfast.spi.data_keys import DataKey, DataKeyStorage
from holdfast.spi.key_provider import KeyProvider
from holdfast.values.codec import encode_json
from holdfast.values.errors import SealedError
from holdfast.values.failpoints import hit

KEPT_SECONDS = 60
"""How long a process caches an unwrapped key."""

INDEX = "holdfast.index"
"""The subject whose data key makes a tenant's keyed digests. No owner can have this name."""

_KEY_BYTES = 32
_NUMBER_BITS = 62
_MOST = 10_000
_PAGE = 100


@dataclass(frozen=True, slots=True)
class OpenKey:
    """An unwrapped data key.

    >>> OpenKey(7, "ana", bytes(32))
    OpenKey(number=7, subject='ana')
    """

    number: int
    subject: str
    secret: bytes = field(repr=False)
    made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Ciphers and keys that were derived from the secret, cached as long as this object lives."""
    first_number: int = field(default=0, repr=False)
    """The number of the subject's first key, or 0 for that key itself."""
    first: OpenKey | None = field(default=None, repr=False)
    """The first key, of a later one from ``of_subject``: it encrypts what must stay equal."""

    def derived(self, purpose: bytes) -> bytes:
        """Return a key for one purpose, derived from the secret.

        >>> len(OpenKey(7, "ana", bytes(32)).derived(b"nonce"))
        32
        """
        name = purpose.decode()
        if name not in self.made:
            found = blake2b(purpose, key=self.secret, digest_size=_KEY_BYTES).digest()
            self.made[name] = found
        return bytes(self.made[name])


class DataKeys:
    """The unwrapped keys of a tenant; every process forgets a destroyed key within a minute.

    ::

        keys = DataKeys(storage, provider, tenant="acme")
        key = await keys.of_subject("ana")
    """

    def __init__(
        self,
        storage: DataKeyStorage,
        provider: KeyProvider,
        *,
        tenant: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._provider = provider
        self._tenant = tenant
        self._clock = clock
        self._kept: dict[int, tuple[float, OpenKey]] = {}
        self._numbers: dict[str, int] = {}

    async def of_subject(self, subject: str) -> OpenKey:
        """Return the current key of a subject; create a missing one.

        If two processes do, the first wins.

        ::

            key = await keys.of_subject("")
        """
        number = self._numbers.get(subject)
        kept = None if number is None else self._get(number)
        # A read caches the key alone, without the first one.
        if kept is not None and (kept.first is not None or not kept.first_number):
            return kept
        found = await self._storage.of_subject(subject) or await self._make(subject)
        key = await self._unwrap(found)
        if key.first_number:
            first = (await self.load([key.first_number]))[key.first_number]
            if first.subject != subject:
                raise SealedError(
                    f"the data key {key.number} of {subject!r} names the first key of another "
                    "subject: its row was changed, restore it from a backup"
                )
            key = replace(key, first=first)
            self._kept[key.number] = (self._clock() + KEPT_SECONDS, key)
        self._numbers[subject] = key.number
        return key

    async def load(self, numbers: Iterable[int]) -> dict[int, OpenKey]:
        """Return keys by their numbers. Raises ``SealedError`` if one of them was destroyed.

        ::

            keys = await data_keys.load({7})
        """
        wanted = set(numbers)
        found = {one: kept for one in wanted if (kept := self._get(one)) is not None}
        missing = wanted - found.keys()
        if missing:
            for stored in await self._storage.of_numbers(sorted(missing)):
                found[stored.number] = await self._unwrap(stored)
        if gone := wanted - found.keys():
            raise SealedError(
                f"the data key {min(gone)} is not stored: it was destroyed by an erasure, "
                "or the value was copied from elsewhere"
            )
        return found

    def forget(self, numbers: Collection[int]) -> None:
        """Delete these unwrapped keys from the cache.

        ::

            keys.forget([7])
        """
        for number in numbers:
            self._kept.pop(number, None)
        self._numbers = {
            subject: number for subject, number in self._numbers.items() if number in self._kept
        }

    async def rotate(
        self, older_than_seconds: float, progress: Callable[[int], None] | None = None
    ) -> int:
        """Replace the current keys older than ``older_than_seconds``. Returns how many.

        The replaced ones stay, for what they encrypted. If a call was interrupted, call it again;
        with ``older_than_seconds`` it leaves those that are done. ::

            replaced = await keys.rotate(86_400)
        """
        due: list[DataKey] = []
        while page := await self._storage.current(
            older_than_seconds, due[-1].number if due else 0, _PAGE
        ):
            due += page
        replaced = 0
        for old in due:
            # Words are found by their digests: with another key of these, no old one would be.
            if old.subject == INDEX:
                continue
            hit("keys.before_replace")
            if await self._storage.replace(await self._draft(old.subject), old.number):
                self.forget([old.number])
                replaced += 1
                if progress is not None:
                    progress(1)
        return replaced

    async def rewrap(self, progress: Callable[[int], None] | None = None) -> int:
        """Wrap all keys with the provider's current KEK. Returns how many changed.

        If a call was interrupted, call it again. ::

            changed = await keys.rewrap()
        """
        changed = after = 0
        kek = self._provider.current
        while page := await self._storage.page(after, _PAGE):
            for one in page:
                after = one.number
                if one.kek == kek:
                    continue
                context = self._context(one)
                secret = await self._provider.unwrap(one.kek, one.wrapped, context)
                wrapped = await self._provider.wrap(kek, secret, context)
                hit("keys.before_rewrap")
                if await self._storage.rewrap(one._replace(kek=kek, wrapped=wrapped), one.kek):
                    changed += 1
                    if progress is not None:
                        progress(1)
        return changed

    async def _make(self, subject: str) -> DataKey:
        return await self._storage.add(await self._draft(subject))

    async def _draft(self, subject: str) -> DataKey:
        number = secrets.randbits(_NUMBER_BITS) + 1
        draft = DataKey(number, subject, self._provider.current, b"")
        secret = secrets.token_bytes(_KEY_BYTES)
        wrapped = await self._provider.wrap(draft.kek, secret, self._context(draft))
        return draft._replace(wrapped=wrapped)

    async def _unwrap(self, stored: DataKey) -> OpenKey:
        secret = await self._provider.unwrap(stored.kek, stored.wrapped, self._context(stored))
        if len(secret) != _KEY_BYTES:
            raise SealedError(f"the data key {stored.number} has another length than 32 bytes")
        key = OpenKey(stored.number, stored.subject, secret, first_number=stored.first)
        now = self._clock()
        if len(self._kept) >= _MOST:
            self.forget([one for one, (until, _) in self._kept.items() if until <= now])
        if len(self._kept) >= _MOST:
            self.forget(list(self._kept)[: _MOST // 2])
        self._kept[key.number] = (now + KEPT_SECONDS, key)
        return key

    def _get(self, number: int) -> OpenKey | None:
        kept = self._kept.get(number)
        if kept is None or kept[0] <= self._clock():
            return None
        return kept[1]

    def _context(self, key: DataKey) -> bytes:
        return context_of(self._tenant, key.subject, key.number)


def context_of(tenant: str, subject: str, number: int) -> bytes:
    """Return the context that binds a wrapped key to its row, so that it cannot be moved.

    >>> context_of("acme", "ana", 7)
    b'["holdfast","acme","ana",7]'
    """
    return encode_json(["holdfast", tenant, subject, number]).encode()


async def kek_counts(storage: DataKeyStorage) -> dict[str, int]:
    """Return how many data keys of a tenant each KEK wraps.

    ::

        print(await kek_counts(storage))
    """
    found: dict[str, int] = {}
    after = 0
    while page := await storage.page(after, _PAGE):
        for one in page:
            found[one.kek] = found.get(one.kek, 0) + 1
        after = page[-1].number
    return found
