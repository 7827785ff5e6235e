"""What every ``BlobIndex`` promises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.blob_index import BlobIndex
from holdfast.testing.harness import Harness
from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.errors import ConflictError, InvalidInputError, NotFoundError

CONTRACT = "blob_index"
pytestmark = pytest.mark.asyncio(loop_scope="session")

FACTS: dict[str, Any] = {
    "size_bytes": 3,
    "content_type": "text/plain",
    "sha256": "0123456789abcdef" * 4,
    "ttl_seconds": 60,
}


async def _put(store: BlobIndex, *refs: str, **facts: Any) -> list[BlobInfo]:
    return [await store.put(ref, f"key of {ref}", **{**FACTS, **facts}) for ref in refs]


async def test_a_blob_comes_back_as_it_was_put(store: BlobIndex) -> None:
    info = await store.put("r1", "blobs/4f: 🦀", **FACTS)
    assert await store.get("r1") == IndexedBlob("r1", "blobs/4f: 🦀", info)
    assert (info.size_bytes, info.content_type, info.sha256) == (
        3,
        "text/plain",
        FACTS["sha256"],
    )
    assert info.pinned is False
    assert info.expires_at is not None
    assert (info.expires_at - info.created_at).total_seconds() == 60


async def test_an_unknown_ref_is_none(store: BlobIndex) -> None:
    assert await store.get("nothing") is None


async def test_putting_the_same_again_changes_nothing(harness: Harness, store: BlobIndex) -> None:
    (first,) = await _put(store, "r1")
    await harness.elapse(30)
    assert await _put(store, "r1") == [first]
    await harness.elapse(31)
    assert await store.get("r1") is None


@pytest.mark.parametrize(
    "other", [{"size_bytes": 4}, {"content_type": "a/b"}, {"sha256": "0" * 64}]
)
async def test_putting_a_ref_again_with_other_facts_is_a_conflict(
    store: BlobIndex, other: dict[str, Any]
) -> None:
    await _put(store, "r1")
    before = await store.get("r1")
    with pytest.raises(ConflictError):
        await _put(store, "r1", **other)
    with pytest.raises(ConflictError):
        await store.put("r1", "another key", **FACTS)
    assert await store.get("r1") == before


async def test_an_object_key_belongs_to_one_ref(store: BlobIndex) -> None:
    await store.put("r1", "key", **FACTS)
    with pytest.raises(ConflictError):
        await store.put("r2", "key", **FACTS)
    assert await store.get("r2") is None


async def test_of_many_who_put_one_ref_with_different_facts_one_wins(store: BlobIndex) -> None:
    outcomes = await asyncio.gather(
        *(store.put("r1", f"key {n}", **FACTS | {"size_bytes": n}) for n in range(20)),
        return_exceptions=True,
    )
    won = [outcome for outcome in outcomes if isinstance(outcome, BlobInfo)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, ConflictError)]
    assert (len(won), len(lost)) == (1, 19)
    found = await store.get("r1")
    assert found is not None
    assert found.info == won[0]
    assert found.object_key == f"key {won[0].size_bytes}"


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("size_bytes", -1),
        ("size_bytes", None),
        ("content_type", ""),
        ("content_type", "x" * 256),
        ("sha256", "0" * 63),
        ("sha256", "A" * 64),
        ("sha256", None),
        ("ttl_seconds", 0),
        ("ttl_seconds", None),
    ],
)
async def test_facts_that_are_not_valid_are_refused_and_nothing_is_written(
    store: BlobIndex, field: str, bad: Any
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await _put(store, "r1", **{field: bad})
    assert caught.value.field == field
    assert await store.get("r1") is None


@pytest.mark.parametrize("bad", ["", "a\nb", "x" * 513, "\ud800", None])
async def test_a_ref_or_key_that_is_not_an_id_is_refused(store: BlobIndex, bad: Any) -> None:
    for field, call in (
        ("ref", store.put(bad, "key", **FACTS)),
        ("object_key", store.put("r1", bad, **FACTS)),
        ("ref", store.get(bad)),
        ("ref", store.pin(bad)),
        ("ref", store.unpin(bad, ttl_seconds=60)),
        ("ref", store.take(bad)),
        ("refs[1]", store.forget(["r1", bad])),
        ("object_keys[1]", store.condemn(["key", bad])),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == field
    await store.put("r1", "key", **FACTS)


async def test_a_blob_expires_when_its_ttl_seconds_have_passed(
    harness: Harness, store: BlobIndex
) -> None:
    await _put(store, "r1")
    await harness.elapse(30)
    assert await store.get("r1") is not None
    await harness.elapse(31)
    assert await store.get("r1") is None


async def test_a_pinned_blob_never_expires(harness: Harness, store: BlobIndex) -> None:
    await _put(store, "r1")
    await store.pin("r1")
    await harness.elapse(10**8)
    found = await store.get("r1")
    assert found is not None
    assert (found.info.pinned, found.info.expires_at) == (True, None)
    assert await store.take_expired() == []


async def test_pin_is_idempotent(store: BlobIndex) -> None:
    await _put(store, "r1")
    await store.pin("r1")
    before = await store.get("r1")
    await store.pin("r1")
    assert await store.get("r1") == before


async def test_unpin_starts_a_full_new_window(harness: Harness, store: BlobIndex) -> None:
    await _put(store, "r1", "r2")
    await store.pin("r1")
    await harness.elapse(50)
    for ref in ("r1", "r2"):
        await store.unpin(ref, ttl_seconds=100)
    await harness.elapse(80)
    assert [await store.get(ref) is None for ref in ("r1", "r2")] == [False, False]
    await harness.elapse(21)
    assert [await store.get(ref) for ref in ("r1", "r2")] == [None, None]


async def test_pin_and_unpin_of_an_unknown_or_expired_ref_are_not_found_errors(
    harness: Harness, store: BlobIndex
) -> None:
    await _put(store, "r1")
    await harness.elapse(61)
    for ref in ("nothing", "r1"):
        for call in (store.pin(ref), store.unpin(ref, ttl_seconds=60)):
            with pytest.raises(NotFoundError) as caught:
                await call
            assert (caught.value.kind, caught.value.key) == ("blob", ref)


async def test_one_tenant_never_sees_anothers_blobs(harness: Harness, store: BlobIndex) -> None:
    other = harness.store(CONTRACT, tenant="acme")
    await _put(store, "r1")
    assert await other.get("r1") is None
    assert await other.take("r1") is None
    with pytest.raises(NotFoundError):
        await other.pin("r1")
    await _put(other, "r1", size_bytes=9)
    await other.condemn(["mine"])
    await store.put("r2", "mine", **FACTS)
    await harness.elapse(61)
    (theirs,) = await other.take_expired()
    assert theirs.info.size_bytes == 9
    assert await other.forget(["r1", "r2"]) == 1
    assert {blob.ref for blob in await store.take_expired()} == {"r1", "r2"}


async def test_what_a_store_returns_is_the_callers_to_mutate(
    harness: Harness, store: BlobIndex
) -> None:
    await _put(store, "r1")
    await harness.elapse(61)
    (await store.take_expired()).clear()
    (await store.condemn(["orphan"])).clear()
    assert await store.forget(["r1"]) == 1
    assert await store.condemn(["orphan"]) == ["orphan"]


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: BlobIndex) -> None:
    keys = ["orphan"]
    await store.condemn(keys)
    keys[0] = "key of r1"
    await _put(store, "r1")
    assert await store.condemn(["orphan"]) == ["orphan"]


async def test_the_index_is_still_there_after_a_reopen(harness: Harness, store: BlobIndex) -> None:
    await _put(store, "live", "taken", "pinned")
    await store.take("taken")
    await store.pin("pinned")
    await store.condemn(["orphan"])
    live, pinned = await store.get("live"), await store.get("pinned")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert [await again.get(ref) for ref in ("live", "pinned", "taken")] == [live, pinned, None]
    with pytest.raises(ConflictError):
        await again.put("r9", "orphan", **FACTS)
    assert await again.forget(["taken"]) == 1
    await harness.elapse(61)
    assert [blob.ref for blob in await again.take_expired()] == ["live"]
