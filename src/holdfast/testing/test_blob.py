"""What every ``Blobs`` promises about whole blobs and their lifetimes."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.contracts.blobs import Blobs
from holdfast.testing.harness import Harness
from holdfast.values.errors import CodecError, InvalidInputError, NotFoundError

CONTRACT = "blobs"
pytestmark = pytest.mark.asyncio(loop_scope="session")

DAY = 86_400


async def _is_there(store: Blobs, ref: str) -> bool:
    try:
        await store.resolve(ref)
    except NotFoundError:
        return False
    return True


async def test_a_blob_comes_back_as_it_was_stored(store: Blobs) -> None:
    data = bytes(range(256)) * 5000
    ref = await store.store(data)
    other = await store.store(b"\x00")
    assert await store.resolve(ref) == data
    assert await store.resolve(other) == b"\x00"


async def test_text_is_stored_as_utf_8(store: Blobs) -> None:
    text = "é 🦀 a\x00b שלום"
    assert await store.resolve(await store.store(text)) == text.encode()
    with pytest.raises(InvalidInputError) as caught:
        await store.store("\ud800")
    assert caught.value.field == "data"


async def test_an_empty_blob_is_legal(store: Blobs) -> None:
    for data in (b"", ""):
        ref = await store.store(data)
        assert await store.resolve(ref) == b""
        assert (await store.stat(ref)).size_bytes == 0


async def test_data_that_is_neither_bytes_nor_text_is_refused(
    harness: Harness, store: Blobs
) -> None:
    before = await harness.raw(CONTRACT)
    bad: Any
    for bad in (None, 7, ["a"], {"a": 1}, bytearray(b"abc")):
        with pytest.raises(InvalidInputError) as caught:
            await store.store(bad)
        assert caught.value.field == "data"
    assert await harness.raw(CONTRACT) == before


@pytest.mark.parametrize("bad", ["", "x" * 256, "text/plain\r\nX: y", "a\x00", "\ud800", None])
async def test_a_content_type_that_is_empty_long_or_holds_control_characters_is_refused(
    harness: Harness, store: Blobs, bad: Any
) -> None:
    async def chunks() -> Any:
        yield b"abc"

    before = await harness.raw(CONTRACT)
    for call in (
        store.store(b"abc", content_type=bad),
        store.store_stream(chunks(), content_type=bad),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == "content_type"
    assert await harness.raw(CONTRACT) == before


async def test_stat_returns_size_type_digest_times_and_pin(harness: Harness, store: Blobs) -> None:
    data = b"low tide"
    ref = await store.store(data)
    info = await store.stat(ref)
    assert (info.size_bytes, info.content_type) == (8, "application/octet-stream")
    assert info.sha256 == hashlib.sha256(data).hexdigest()
    assert info.expires_at is not None
    assert (info.expires_at - info.created_at).total_seconds() == DAY
    assert info.created_at.utcoffset() == info.expires_at.utcoffset()
    assert info.pinned is False
    await harness.elapse(60)
    await store.pin(ref)
    pinned = await store.stat(ref)
    assert (pinned.pinned, pinned.expires_at) == (True, None)
    assert pinned.created_at == info.created_at
    typed = await store.store("x", content_type="text/plain; charset=utf-8")
    assert (await store.stat(typed)).content_type == "text/plain; charset=utf-8"


async def test_a_blob_has_the_subject_that_it_was_stored_with(
    harness: Harness, store: Blobs
) -> None:
    refs = [
        await store.store(b"x"),
        await store.store(b"x", subject="ana"),
        await store.store(b"x", subject="bjørn/2", pinned=True),
        await store.store_stream(_one(b"y" * 3_000_000), subject="ana"),
    ]
    await harness.reopen()
    found = [(await harness.store("blobs").stat(ref)).subject for ref in refs]
    assert found == ["", "ana", "bjørn/2", "ana"]


async def _one(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk


async def test_a_subject_that_is_not_an_id_is_refused_and_nothing_is_stored(
    harness: Harness, store: Blobs
) -> None:
    before = await harness.raw("blobs")
    wrong: Any
    for wrong in ("", 7, "a\0b", "x" * 10_000, "holdfast.index"):
        with pytest.raises(InvalidInputError) as raised:
            await store.store(b"x", subject=wrong)
        assert raised.value.field == "subject"
        with pytest.raises(InvalidInputError):
            await store.store_stream(_one(b"x"), subject=wrong)
    assert await harness.raw("blobs") == before


async def test_a_ref_is_short_opaque_and_new_each_time(store: Blobs) -> None:
    refs = [await store.store(b"same", content_type="a/b") for _ in range(100)]
    assert len(set(refs)) == 100
    # 22 letters of 64 are 132 bits; no letter of these is special in a path, a key or a URL.
    assert all(re.fullmatch("[A-Za-z0-9_-]{22,64}", ref) for ref in refs)


async def test_the_same_bytes_twice_are_two_blobs_with_their_own_lifetimes(
    harness: Harness, store: Blobs
) -> None:
    kept, left, deleted = [await store.store(b"same") for _ in range(3)]
    await store.pin(kept)
    await store.delete(deleted)
    assert await store.resolve(left) == b"same"
    await harness.elapse(DAY + 1)
    assert await store.sweep() == 1
    assert [await _is_there(store, ref) for ref in (kept, left, deleted)] == [True, False, False]


async def test_resolve_of_an_unknown_ref_is_a_not_found_error(store: Blobs) -> None:
    with pytest.raises(NotFoundError) as caught:
        await store.resolve("nothing")
    assert (caught.value.kind, caught.value.key) == ("blob", "nothing")


async def test_stat_of_an_unknown_ref_is_a_not_found_error(store: Blobs) -> None:
    with pytest.raises(NotFoundError):
        await store.stat("nothing")


@pytest.mark.parametrize("bad", ["", "a\nb", "x" * 513, "\ud800", None])
async def test_a_ref_that_is_not_an_id_is_refused(store: Blobs, bad: Any) -> None:
    async def first_chunk() -> None:
        await anext(store.open(bad))

    for call in (
        store.resolve(bad),
        store.stat(bad),
        store.pin(bad),
        store.unpin(bad),
        store.delete(bad),
        first_chunk(),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == "ref"


async def test_a_blob_lives_for_24_hours_by_default(harness: Harness, store: Blobs) -> None:
    ref = await store.store(b"abc")
    await harness.elapse(DAY - 60)
    assert await _is_there(store, ref)
    await harness.elapse(61)
    assert not await _is_there(store, ref)


async def test_a_blob_expires_when_its_ttl_seconds_have_passed(harness: Harness) -> None:
    store = harness.store(CONTRACT, ttl_seconds=60)
    ref = await store.store(b"abc")
    await harness.elapse(30)
    assert await store.resolve(ref) == b"abc"
    await harness.elapse(31)
    assert not await _is_there(store, ref)


async def test_an_expired_blob_is_invisible_at_once(harness: Harness, store: Blobs) -> None:
    ref = await store.store(b"abc")
    await harness.elapse(DAY + 1)
    assert not await _is_there(store, ref)
    with pytest.raises(NotFoundError):
        await store.stat(ref)
    with pytest.raises(NotFoundError):
        await anext(store.open(ref))
    assert await store.delete(ref) is False


async def test_a_pinned_blob_never_expires(harness: Harness, store: Blobs) -> None:
    ref = await store.store(b"abc")
    await store.pin(ref)
    await harness.elapse(1000 * DAY)
    assert await store.resolve(ref) == b"abc"


async def test_pin_is_idempotent(harness: Harness, store: Blobs) -> None:
    ref = await store.store(b"abc")
    for _ in range(3):
        await store.pin(ref)
    assert (await store.stat(ref)).pinned is True
    await store.unpin(ref)
    assert (await store.stat(ref)).pinned is False
    await harness.elapse(DAY + 1)
    assert not await _is_there(store, ref)


async def test_pin_of_an_unknown_or_expired_ref_is_a_not_found_error(
    harness: Harness, store: Blobs
) -> None:
    expired = await store.store(b"abc")
    deleted = await store.store(b"abc")
    await store.delete(deleted)
    await harness.elapse(DAY + 1)
    for ref in ("nothing", deleted, expired):
        with pytest.raises(NotFoundError) as caught:
            await store.pin(ref)
        assert (caught.value.kind, caught.value.key) == ("blob", ref)


async def test_unpin_starts_a_full_new_window_from_now(harness: Harness, store: Blobs) -> None:
    ref = await store.store(b"abc")
    await store.pin(ref)
    await harness.elapse(10 * DAY)
    await store.unpin(ref)
    await harness.elapse(DAY - 60)
    assert await _is_there(store, ref)
    await harness.elapse(61)
    assert not await _is_there(store, ref)


async def test_unpin_of_a_blob_that_is_not_pinned_starts_a_new_window_too(
    harness: Harness, store: Blobs
) -> None:
    ref = await store.store(b"abc")
    await harness.elapse(DAY - 60)
    await store.unpin(ref)
    await harness.elapse(DAY - 60)
    assert await _is_there(store, ref)


async def test_unpin_of_an_unknown_or_expired_ref_is_a_not_found_error(
    harness: Harness, store: Blobs
) -> None:
    ref = await store.store(b"abc")
    await harness.elapse(DAY + 1)
    for gone in ("nothing", ref):
        with pytest.raises(NotFoundError):
            await store.unpin(gone)


async def test_delete_removes_the_blob_and_says_so(store: Blobs) -> None:
    ref = await store.store(b"abc")
    assert await store.delete(ref) is True
    assert await store.delete(ref) is False
    assert await store.delete("nothing") is False
    assert not await _is_there(store, ref)
    with pytest.raises(NotFoundError):
        await store.stat(ref)


async def test_a_pinned_blob_can_be_deleted(store: Blobs) -> None:
    ref = await store.store(b"abc")
    await store.pin(ref)
    assert await store.delete(ref) is True
    assert not await _is_there(store, ref)


async def test_sweep_removes_expired_blobs_and_counts_them(harness: Harness, store: Blobs) -> None:
    before = await harness.raw(CONTRACT)
    for n in range(150):
        await store.store(f"blob {n}")
    await harness.elapse(DAY + 1)
    assert await store.sweep() == 150
    assert await store.sweep() == 0
    assert await harness.raw(CONTRACT) == before


async def test_sweep_leaves_live_and_pinned_blobs_alone(harness: Harness, store: Blobs) -> None:
    old, pinned = [await store.store(b"abc") for _ in range(2)]
    await store.pin(pinned)
    await harness.elapse(DAY + 1)
    young = await store.store(b"def")
    assert await store.sweep() == 1
    assert [await _is_there(store, ref) for ref in (old, pinned, young)] == [False, True, True]


async def test_a_pin_that_races_the_sweep_wins_or_fails_loudly(
    harness: Harness, store: Blobs
) -> None:
    refs = [await store.store(f"blob {n}") for n in range(20)]

    async def age_and_sweep() -> None:
        await harness.elapse(DAY + 1)
        await store.sweep()

    pins = [store.pin(ref) for ref in refs]
    *half, _ = await asyncio.gather(*pins[:10], age_and_sweep(), return_exceptions=True)
    rest = await asyncio.gather(*pins[10:], store.sweep(), return_exceptions=True)
    for n, outcome in enumerate([*half, *rest[:10]]):
        if outcome is None:
            assert await store.resolve(refs[n]) == f"blob {n}".encode()
        else:
            assert isinstance(outcome, NotFoundError)
            assert not await _is_there(store, refs[n])


async def test_an_altered_blob_is_a_codec_error_never_wrong_bytes(
    harness: Harness, store: Blobs
) -> None:
    ref = await store.store(b"low tide")
    await harness.damage_blob(ref, truncate=False)
    with pytest.raises(CodecError):
        await store.resolve(ref)


async def test_a_truncated_blob_is_a_codec_error_never_wrong_bytes(
    harness: Harness, store: Blobs
) -> None:
    ref = await store.store(b"low tide")
    await harness.damage_blob(ref, truncate=True)
    with pytest.raises(CodecError):
        await store.resolve(ref)


async def test_blobs_stored_at_once_all_survive(store: Blobs) -> None:
    refs = await asyncio.gather(*(store.store(f"blob {n}") for n in range(100)))
    assert len(set(refs)) == 100
    found = await asyncio.gather(*(store.resolve(ref) for ref in refs))
    assert found == [f"blob {n}".encode() for n in range(100)]


async def test_a_ref_is_valid_in_its_tenant_only(harness: Harness, store: Blobs) -> None:
    other = harness.store(CONTRACT, tenant="acme")
    ref = await store.store(b"abc")
    assert not await _is_there(other, ref)
    for call in (other.stat(ref), other.pin(ref), other.unpin(ref)):
        with pytest.raises(NotFoundError):
            await call
    with pytest.raises(NotFoundError):
        await anext(other.open(ref))
    assert await other.delete(ref) is False
    assert await store.resolve(ref) == b"abc"
    await harness.elapse(DAY + 1)
    assert await other.sweep() == 0
    assert await store.sweep() == 1


async def test_blobs_and_pins_are_still_there_after_a_reopen(
    harness: Harness, store: Blobs
) -> None:
    kept, pinned = await store.store(b"abc"), await store.store(b"def", content_type="a/b")
    await store.pin(pinned)
    info = await store.stat(pinned)
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.resolve(kept) == b"abc"
    await harness.elapse(DAY + 1)
    assert not await _is_there(again, kept)
    assert await again.resolve(pinned) == b"def"
    assert await again.stat(pinned) == info
