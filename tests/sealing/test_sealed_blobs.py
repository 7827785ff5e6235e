"""Sealed blobs: what is stored, what is read, and what a change of the bytes does."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Settings, State
from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.inmemory.blob import InMemoryBlobs
from holdfast.engines.inmemory.data_keys import InMemoryDataKeys
from holdfast.engines.inmemory.engine import InMemory
from holdfast.errors import CodecError, InvalidInputError, NotFoundError, SealedError
from holdfast.sealing.blobs import PART_BYTES, SealedBlobs
from holdfast.sealing.data_keys import DataKeys
from holdfast.sealing.seal import Seal
from holdfast.values.failpoints import failpoint
from tests.sealing.conftest import RING, Place

pytestmark = pytest.mark.asyncio(loop_scope="session")

CANARY = b"zanzibarquokka"
SIZES = (0, 1, 15, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 7)


def _files(folder: Path) -> list[bytes]:
    return [one.read_bytes() for one in folder.rglob("*") if one.is_file()]


async def _chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def _read(state: State, ref: str, offset: int = 0, length: int | None = None) -> bytes:
    return b"".join([one async for one in state.blobs.open(ref, offset=offset, length=length)])


async def test_every_size_and_range_comes_back(place: Place) -> None:
    state = await place.open()
    for size in SIZES:
        await _check_size(state, os.urandom(size))


async def _check_size(state: State, data: bytes) -> None:
    size = len(data)
    stored = await state.blobs.store(data, content_type="text/x")
    streamed = await state.blobs.store_stream(_chunks(data, 10_000), content_type="text/x")
    for ref in (stored, streamed):
        assert await state.blobs.resolve(ref) == data
        info = await state.blobs.stat(ref)
        assert (info.size_bytes, info.content_type) == (size, "text/x")
        assert info.sha256 == hashlib.sha256(data).hexdigest()
        for offset in (0, 1, PART_BYTES - 1, PART_BYTES, size):
            for length in (None, 0, 1, PART_BYTES + 2):
                end = None if length is None else offset + length
                assert await _read(state, ref, offset, length) == data[offset:end]


async def test_neither_bytes_nor_type_nor_digest_are_stored(place: Place) -> None:
    state = await place.open()
    await state.blobs.store(CANARY, content_type=f"text/{CANARY.decode()}")
    await state.for_owner("ana").blobs.store_stream(_chunks(CANARY, 3))
    raw = await place.dump()
    for one in (CANARY.decode(), CANARY.hex(), hashlib.sha256(CANARY).hexdigest()):
        assert one not in raw
    await (await place.open(None)).blobs.store(CANARY)
    raw = await place.dump()
    assert CANARY.decode() in raw or CANARY.hex() in raw


async def test_a_state_without_keys_reads_plain_blobs_only(place: Place) -> None:
    sealed, plain = await place.open(), await place.open(None)
    data = os.urandom(2 * PART_BYTES)
    old = await plain.blobs.store(data)
    assert await sealed.blobs.resolve(old) == data
    assert await _read(sealed, old, PART_BYTES + 5, 10) == data[PART_BYTES + 5 :][:10]
    assert (await sealed.blobs.stat(old)).size_bytes == len(data)
    new = await sealed.blobs.store(data)
    for read in (plain.blobs.resolve, plain.blobs.stat):
        with pytest.raises(SealedError, match="HOLDFAST_SEAL"):
            await read(new)
    with pytest.raises(InvalidInputError, match="reserved"):
        await plain.blobs.store(data, content_type="holdfast.sealed:AQ==")


async def test_a_blob_has_the_key_of_its_owner(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state = await place.open()
    refs = [
        await state.for_owner("ana").blobs.store(CANARY),
        await state.blobs.store(CANARY, subject="ana"),
    ]
    bens = await state.for_owner("ana").blobs.store(CANARY, subject="ben")
    for ref in (*refs, bens):
        assert await state.blobs.resolve(ref) == CANARY

    def die() -> None:
        raise KeyboardInterrupt

    with failpoint("erase.after_shred", die), pytest.raises(KeyboardInterrupt):
        await state.erase(subject="ana")
    for ref in refs:
        with pytest.raises(SealedError, match="destroyed"):
            await state.blobs.resolve(ref)
    await state.erase(subject="ana")
    for ref in refs:
        with pytest.raises(NotFoundError):
            await state.blobs.resolve(ref)
    assert await state.blobs.resolve(bens) == CANARY


async def test_bytes_that_were_changed_moved_or_cut_off_are_refused() -> None:
    engine = InMemory()
    seal = Seal("default", DataKeys(InMemoryDataKeys(engine), RING, tenant="default"))
    inner = InMemoryBlobs(engine)
    blobs = StoredBlobs(SealedBlobs(inner, seal))
    data = os.urandom(3 * PART_BYTES)
    one, other = await blobs.store(data), await blobs.store(data)
    objects = inner._objects
    sealed = objects[one]
    part = PART_BYTES + 16
    swapped = sealed[part : 2 * part] + sealed[:part] + sealed[2 * part :]
    for wrong in (
        bytes([sealed[0] ^ 1]) + sealed[1:],
        swapped,
        objects[other],
        sealed[: 2 * part],
        sealed[: 2 * part + 5],
    ):
        objects[one] = wrong
        with pytest.raises(CodecError):
            await blobs.resolve(one)
    # A range is checked too, part by part.
    objects[one] = swapped
    with pytest.raises(CodecError):
        _ = [chunk async for chunk in blobs.open(one, offset=5, length=10)]


async def test_objects_on_a_disk_are_sealed(tmp_path: Path) -> None:
    settings = Settings(auto_migrate=True)
    opening = holdfast.open(
        "memory:", blobs=f"file://{tmp_path}", settings=settings, seal=RING, background=False
    )
    data = CANARY + os.urandom(9 << 20)
    async with opening as state:
        refs = [
            await state.blobs.store(data),
            await state.blobs.store_stream(_chunks(data, 70_000)),
        ]
        for ref in refs:
            assert await state.blobs.resolve(ref) == data
            assert await _read(state, ref, 8 << 20, 5) == data[8 << 20 :][:5]
        files = _files(tmp_path)
    assert sum(map(len, files)) > 2 * len(data)
    assert not any(CANARY in one for one in files)
