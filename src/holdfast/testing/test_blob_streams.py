"""What every ``Blobs`` promises about blobs in pieces: streams in, streams and ranges out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from holdfast.contracts.blobs import Blobs
from holdfast.testing.harness import Harness
from holdfast.values.blobs import MAX_CHUNK_BYTES
from holdfast.values.errors import CodecError, InvalidInputError, NotFoundError

CONTRACT = "blobs"
pytestmark = pytest.mark.asyncio(loop_scope="session")

LARGE = bytes(range(251)) * 12_000
"""Three megabytes in which every chunk differs."""


async def _chunks(*chunks: Any) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


async def _read(store: Blobs, ref: str, **part: Any) -> bytes:
    return b"".join([chunk async for chunk in store.open(ref, **part)])


async def _read_damaged(store: Blobs, ref: str) -> int:
    """How many bytes a stream hands out before it says that they are damaged."""
    count = 0
    try:
        async for chunk in store.open(ref):
            count += len(chunk)
    except CodecError:
        return count
    pytest.fail("the stream ended as if nothing were wrong")


async def test_open_hands_out_the_blob_in_order_in_chunks_of_at_most_1_mib(
    store: Blobs,
) -> None:
    ref = await store.store(LARGE)
    chunks = [chunk async for chunk in store.open(ref)]
    assert b"".join(chunks) == LARGE
    assert all(0 < len(chunk) <= MAX_CHUNK_BYTES for chunk in chunks)


async def test_open_of_an_empty_blob_hands_out_nothing(store: Blobs) -> None:
    ref = await store.store(b"")
    assert [chunk async for chunk in store.open(ref)] == []
    assert [chunk async for chunk in store.open(ref, offset=3, length=3)] == []


async def test_open_of_an_unknown_ref_is_a_not_found_error(store: Blobs) -> None:
    for part in ({}, {"offset": 1, "length": 1}):
        with pytest.raises(NotFoundError):
            await _read(store, "nothing", **part)


async def test_a_stream_may_be_closed_before_its_end(store: Blobs) -> None:
    ref = await store.store(LARGE)
    async with aclosing(store.open(ref)) as stream:
        first = await anext(stream)
    assert LARGE.startswith(first)
    assert await _read(store, ref) == LARGE


async def test_a_range_reads_only_that_part(store: Blobs) -> None:
    ref = await store.store(LARGE)
    for offset, length in ((0, 10), (5, 1), (MAX_CHUNK_BYTES - 1, 2), (10, 2 * MAX_CHUNK_BYTES)):
        assert (
            await _read(store, ref, offset=offset, length=length)
            == (LARGE[offset : offset + length])
        )
    assert await _read(store, ref, offset=len(LARGE) - 3) == LARGE[-3:]


async def test_a_range_past_the_end_is_what_there_is(store: Blobs) -> None:
    ref = await store.store(b"abc")
    assert await _read(store, ref, offset=1, length=100) == b"bc"
    assert await _read(store, ref, offset=3) == b""
    assert await _read(store, ref, offset=100, length=5) == b""


async def test_a_length_of_zero_is_an_empty_stream(store: Blobs) -> None:
    ref = await store.store(b"abc")
    assert [chunk async for chunk in store.open(ref, length=0)] == []
    assert [chunk async for chunk in store.open(ref, offset=1, length=0)] == []


async def test_a_negative_offset_or_length_is_refused(store: Blobs) -> None:
    ref = await store.store(b"abc")
    for field in ("offset", "length"):
        with pytest.raises(InvalidInputError) as caught:
            await _read(store, ref, **{field: -1})
        assert caught.value.field == field


async def test_a_stream_of_an_altered_blob_ends_in_a_codec_error_before_its_last_chunk(
    harness: Harness, store: Blobs
) -> None:
    for data in (b"low tide", LARGE):
        ref = await store.store(data)
        await harness.damage_blob(ref, truncate=False)
        assert await _read_damaged(store, ref) < len(data)


async def test_a_stream_of_a_truncated_blob_ends_in_a_codec_error_before_its_last_chunk(
    harness: Harness, store: Blobs
) -> None:
    for data in (b"low tide", LARGE):
        ref = await store.store(data)
        await harness.damage_blob(ref, truncate=True)
        assert await _read_damaged(store, ref) < len(data) - 1


async def test_a_range_that_reaches_into_what_is_missing_is_a_codec_error(
    harness: Harness, store: Blobs
) -> None:
    ref = await store.store(b"low tide")
    await harness.damage_blob(ref, truncate=True)
    for offset, length in ((4, None), (4, 4), (7, 1)):
        with pytest.raises(CodecError):
            await _read(store, ref, offset=offset, length=length)


async def test_store_stream_keeps_the_chunks_in_order(store: Blobs) -> None:
    pieces = [LARGE[at : at + 100_000] for at in range(0, len(LARGE), 100_000)]
    ref = await store.store_stream(_chunks(*pieces, b"", b"end"), content_type="video/mp4")
    assert await store.resolve(ref) == LARGE + b"end"
    whole = await store.stat(await store.store(LARGE + b"end"))
    info = await store.stat(ref)
    assert (info.size_bytes, info.sha256) == (whole.size_bytes, whole.sha256)
    assert info.content_type == "video/mp4"
    assert info.expires_at is not None


async def test_store_stream_of_no_chunks_is_an_empty_blob(store: Blobs) -> None:
    for chunks in (_chunks(), _chunks(b"", b"")):
        ref = await store.store_stream(chunks)
        assert await store.resolve(ref) == b""


async def test_a_stream_that_fails_leaves_nothing(harness: Harness, store: Blobs) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield LARGE
        raise OSError("the source broke off")

    before = await harness.raw(CONTRACT)
    with pytest.raises(OSError, match="broke off"):
        await store.store_stream(failing())
    assert await harness.raw(CONTRACT) == before


async def test_a_stream_that_is_cancelled_leaves_nothing(harness: Harness, store: Blobs) -> None:
    started = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield LARGE
        started.set()
        await asyncio.Event().wait()

    before = await harness.raw(CONTRACT)
    storing = asyncio.ensure_future(store.store_stream(endless()))
    await started.wait()
    storing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await storing
    assert await harness.raw(CONTRACT) == before


async def test_a_chunk_that_is_not_bytes_is_refused_and_nothing_is_left(
    harness: Harness, store: Blobs
) -> None:
    before = await harness.raw(CONTRACT)
    for bad in ("text", None, 7, [b"x"]):
        with pytest.raises(InvalidInputError) as caught:
            await store.store_stream(_chunks(b"good", bad))
        assert caught.value.field == "chunks[1]"
    assert await harness.raw(CONTRACT) == before
