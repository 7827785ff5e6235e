"""Encrypted blobs: the bytes in parts, each encrypted, and the content type and the digest.

Each blob has its own key, derived from the data key of its owner and a random salt, so that the
number of a part can be its nonce. A part is bound to its blob, its number and whether it is the
last.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from copy import copy
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from holdfast.sealing.cipher import Place, bound_to
from holdfast.sealing.data_keys import OpenKey
from holdfast.sealing.seal import Seal
from holdfast.spi.blobs import SMALL_BYTES, BlobRange, BlobStorage, end_of, hash_more
from holdfast.values.blobs import BlobInfo
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import CodecError, SealedError
from holdfast.values.sealed import SEALED_TEXT

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

PART_BYTES = 64 << 10
"""How many bytes of a blob are encrypted together."""

_TAG_BYTES = 16
_SALT_BYTES = 16
_NONCE_BYTES = 12
_SEALED_PART = PART_BYTES + _TAG_BYTES
_DIGEST_BYTES = 32 + _TAG_BYTES
_DIGEST_NONCE = b"\xff" * _NONCE_BYTES


class SealedBlobs(BlobStorage):
    """Encrypts what a ``BlobStorage`` stores, with the data key of each blob's subject.

    Anyone who has a ref can read its blob, whatever the subject: a ref cannot be guessed. ::

        blobs = SealedBlobs(PostgresBlobs(engine), sealing).for_subject("ana")
    """

    def __init__(self, inner: BlobStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal
        self._subject = ""

    def for_subject(self, subject: str) -> Self:
        """Return a view of the same blobs; new ones are encrypted with the key of this subject."""
        other = copy(self)
        vars(other).update(_inner=self._inner.for_subject(subject), _subject=subject)
        return other

    async def store(
        self, ref: str, data: bytes, content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store bytes under a new ref."""
        digest = sha256()
        if self._seal.keys is not None:
            await hash_more(digest, data)
        box, kept_as = await self._new(ref, content_type, digest.hexdigest())
        if box is not None:
            if len(data) <= SMALL_BYTES:
                data = box.seal(data)
            else:
                data = await asyncio.to_thread(box.seal, data)
        await self._inner.store(ref, data, kept_as, ttl_seconds)

    async def store_stream(
        self, ref: str, chunks: AsyncIterator[bytes], content_type: str, ttl_seconds: float | None
    ) -> None:
        """Store chunks of any size; their digest follows them."""
        box, kept_as = await self._new(ref, content_type, "")
        if box is None:
            await self._inner.store_stream(ref, chunks, kept_as, ttl_seconds)
            return
        async with aclosing(_sealed_stream(box, chunks)) as sealed:
            await self._inner.store_stream(ref, sealed, kept_as, ttl_seconds)

    async def open(
        self, ref: str, offset: int, length: int | None, *, whole: bool
    ) -> BlobRange | None:
        """Return a range of a blob."""
        if self._seal.keys is None:
            found = await self._inner.open(ref, offset, length, whole=whole)
            if found is not None:
                await self._check_plain(found)
            return found
        first = offset // PART_BYTES
        until = None if length is None else -(-(offset + length) // PART_BYTES)
        reach = None if until is None else (until - first) * _SEALED_PART
        found = await self._inner.open(ref, first * _SEALED_PART, reach, whole=whole)
        if found is None:
            return None
        if not found.info.content_type.startswith(SEALED_TEXT):
            # Stored before the tenant was sealed: its bytes are at other places.
            await found.parts.aclose()
            return await self._inner.open(ref, offset, length, whole=whole)
        try:
            box, info = await self._opened(ref, found.info)
        except BaseException:
            await found.parts.aclose()
            raise
        end = end_of(info, offset, length)
        return BlobRange(info, _opened_parts(box, info, found.parts, offset, end))

    async def stat(self, ref: str) -> BlobInfo | None:
        """Return what is known about a blob."""
        info = await self._inner.stat(ref)
        if info is None or not info.content_type.startswith(SEALED_TEXT):
            return info
        return (await self._opened(ref, info))[1]

    async def pin(self, ref: str) -> bool:
        """Remove the time to live."""
        return await self._inner.pin(ref)

    async def unpin(self, ref: str, ttl_seconds: float) -> bool:
        """Set the time to live."""
        return await self._inner.unpin(ref, ttl_seconds)

    async def delete(self, ref: str) -> bool:
        """Delete a blob."""
        return await self._inner.delete(ref)

    async def sweep(self) -> int:
        """Delete expired blobs."""
        return await self._inner.sweep()

    async def _new(self, ref: str, content_type: str, digest: str) -> tuple[_Box | None, str]:
        self._seal.check("content_type", content_type)
        sealer = await self._seal.sealer(self._subject)
        if sealer is None:
            return None, content_type
        salt = os.urandom(_SALT_BYTES)
        facts = encode_json([content_type, salt.hex(), digest])
        return _Box.of(sealer.tenant, sealer.key, ref, salt), sealer.text(_facts(ref), facts)

    async def _check_plain(self, found: BlobRange) -> None:
        try:
            await self._seal.opener(found.info.content_type)
        except BaseException:
            await found.parts.aclose()
            raise

    async def _opened(self, ref: str, info: BlobInfo) -> tuple[_Box, BlobInfo]:
        opener = await self._seal.opener(info.content_type)
        key = opener.key_of(info.content_type)
        facts = opener.text(key.subject, _facts(ref), info.content_type)
        content_type, salt, digest = decode_json(facts)
        box = _Box.of(opener.tenant, key, ref, bytes.fromhex(salt))
        sealed_bytes = info.size_bytes
        if not digest:
            sealed_bytes -= _DIGEST_BYTES
            digest = await self._digest(ref, box, sealed_bytes)
        size = sealed_bytes - _TAG_BYTES * _count(sealed_bytes)
        if sealed_bytes < _TAG_BYTES or size < 0:
            raise SealedError("a sealed blob is damaged: it is shorter than any sealed one")
        opened = dataclasses.replace(
            info, size_bytes=size, content_type=content_type, sha256=digest
        )
        return box, opened

    async def _digest(self, ref: str, box: _Box, at: int) -> str:
        found = await self._inner.open(ref, at, _DIGEST_BYTES, whole=True)
        sealed = b""
        if found is not None:
            async with aclosing(found.parts) as parts:
                async for part in parts:
                    sealed += bytes(part)
        return box.open_digest(sealed).hex()


class _Box(NamedTuple):
    """Encrypts and decrypts the parts of one blob."""

    cipher: AESGCM
    tenant: str
    ref: str

    @classmethod
    def of(cls, tenant: str, key: OpenKey, ref: str, salt: bytes) -> _Box:
        from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415 - an extra

        own = blake2b(salt, key=key.derived(b"blobs"), digest_size=32).digest()
        return cls(aead.AESGCM(own), tenant, ref)

    def seal(self, data: bytes) -> bytes:
        count = max(1, -(-len(data) // PART_BYTES))
        view = memoryview(data)
        return b"".join(
            self.seal_part(at, view[at * PART_BYTES : (at + 1) * PART_BYTES], last=at == count - 1)
            for at in range(count)
        )

    def seal_part(self, number: int, data: Any, *, last: bool) -> bytes:
        return self.cipher.encrypt(_nonce(number), data, self._bound(last=last))

    def open_part(self, number: int, data: bytes, *, last: bool) -> bytes:
        return self._open(_nonce(number), data, self._bound(last=last))

    def seal_digest(self, digest: bytes) -> bytes:
        return self.cipher.encrypt(_DIGEST_NONCE, digest, self._bound_digest())

    def open_digest(self, sealed: bytes) -> bytes:
        return self._open(_DIGEST_NONCE, sealed, self._bound_digest())

    def _bound(self, *, last: bool) -> bytes:
        return bound_to(self.tenant, Place("blob", self.ref, "last" if last else "part"))

    def _bound_digest(self) -> bytes:
        return bound_to(self.tenant, Place("blob", self.ref, "digest"))

    def _open(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

        try:
            return self.cipher.decrypt(nonce, data, bound)
        except (InvalidTag, ValueError):
            raise CodecError(
                f"the bytes of blob {self.ref!r} are not those that were stored"
            ) from None


async def _sealed_stream(box: _Box, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    digest, rest, number = sha256(), bytearray(), 0
    async for chunk in chunks:
        await hash_more(digest, chunk)
        rest += chunk
        # The last part is known only at the end.
        full = max(0, (len(rest) - 1) // PART_BYTES)
        if full:
            view = memoryview(bytes(rest[: full * PART_BYTES]))
            del rest[: full * PART_BYTES]
            for at in range(full):
                part = view[at * PART_BYTES : (at + 1) * PART_BYTES]
                yield box.seal_part(number, part, last=False)
                number += 1
    yield box.seal_part(number, bytes(rest), last=True)
    yield box.seal_digest(digest.digest())


async def _opened_parts(
    box: _Box, info: BlobInfo, sealed: AsyncGenerator[Any, None], offset: int, end: int
) -> AsyncGenerator[Any, None]:
    last = max(1, -(-info.size_bytes // PART_BYTES)) - 1
    number, rest = offset // PART_BYTES, bytearray()
    async with aclosing(sealed) as buffers:
        async for buffer in buffers:
            rest += buffer
            while (at := number * PART_BYTES) < max(end, 1):
                size = min(PART_BYTES, info.size_bytes - at) + _TAG_BYTES
                if number > last or len(rest) < size:
                    break
                part = box.open_part(number, bytes(rest[:size]), last=number == last)
                del rest[:size]
                number += 1
                wanted = part[max(0, offset - at) : max(0, end - at)]
                if wanted:
                    yield wanted


def _facts(ref: str) -> Place:
    return Place("blob", ref, "facts")


def _nonce(number: int) -> bytes:
    return number.to_bytes(_NONCE_BYTES, "big")


def _count(sealed_bytes: int) -> int:
    return max(1, -(-sealed_bytes // _SEALED_PART))
