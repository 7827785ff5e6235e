"""What every ``BlobIndex`` promises about removal: taken, forgotten, condemned."""

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


async def test_take_hides_the_blob_and_returns_it(store: BlobIndex) -> None:
    await _put(store, "r1", "r2")
    await store.pin("r2")
    for ref in ("r1", "r2"):
        blob = await store.get(ref)
        assert await store.take(ref) == blob
        assert await store.get(ref) is None
        assert await store.take(ref) is None


async def test_take_of_an_unknown_or_expired_ref_is_none(
    harness: Harness, store: BlobIndex
) -> None:
    await _put(store, "r1")
    await harness.elapse(61)
    assert await store.take("r1") is None
    assert await store.take("nothing") is None


async def test_one_of_many_takers_gets_the_blob(harness: Harness, store: BlobIndex) -> None:
    await _put(store, "r1", *(f"old {n}" for n in range(10)))
    await store.pin("r1")
    takers = await asyncio.gather(*(store.take("r1") for _ in range(10)))
    assert len([blob for blob in takers if blob]) == 1
    await harness.elapse(61)
    batches = await asyncio.gather(*(store.take_expired() for _ in range(5)))
    taken = [blob.ref for batch in batches for blob in batch]
    assert sorted(taken) == [f"old {n}" for n in range(10)]


async def test_pin_of_a_taken_ref_is_a_not_found_error(store: BlobIndex) -> None:
    await _put(store, "r1")
    await store.take("r1")
    for call in (store.pin("r1"), store.unpin("r1", ttl_seconds=60)):
        with pytest.raises(NotFoundError):
            await call
    assert await store.get("r1") is None


async def test_a_taken_ref_cannot_be_put_again(harness: Harness, store: BlobIndex) -> None:
    await _put(store, "taken", "expired")
    await store.take("taken")
    await harness.elapse(61)
    for ref in ("taken", "expired"):
        with pytest.raises(ConflictError):
            await _put(store, ref)
        assert await store.get(ref) is None


async def test_take_expired_returns_what_has_expired_the_earliest_first_and_nothing_else(
    harness: Harness, store: BlobIndex
) -> None:
    await _put(store, "r1", ttl_seconds=50)
    await _put(store, "r2", ttl_seconds=10)
    await _put(store, "r3", ttl_seconds=30)
    await _put(store, "pinned", "live", ttl_seconds=40)
    await store.pin("pinned")
    await store.unpin("live", ttl_seconds=1000)
    blobs = [await store.get(ref) for ref in ("r2", "r3", "r1")]
    assert await store.take_expired() == []
    await harness.elapse(60)
    assert await store.take_expired() == blobs
    assert await store.take_expired() == []


async def test_take_expired_returns_at_most_limit(harness: Harness, store: BlobIndex) -> None:
    for n in range(5):
        await _put(store, f"r{n}", ttl_seconds=10 + n)
    await harness.elapse(60)
    batches = [[blob.ref for blob in await store.take_expired(2)] for _ in range(4)]
    assert batches == [["r0", "r1"], ["r2", "r3"], ["r4"], []]


async def test_a_limit_of_zero_is_an_empty_result_and_a_negative_one_is_refused(
    harness: Harness, store: BlobIndex
) -> None:
    await _put(store, "r1")
    await harness.elapse(61)
    assert await store.take_expired(0) == []
    with pytest.raises(InvalidInputError) as caught:
        await store.take_expired(-1)
    assert caught.value.field == "limit"
    with pytest.raises(InvalidInputError) as caught:
        await store.take_expired(retry_seconds=0)
    assert caught.value.field == "retry_seconds"
    assert len(await store.take_expired(1)) == 1


async def test_what_was_taken_and_not_forgotten_is_taken_again_after_retry_seconds(
    harness: Harness, store: BlobIndex
) -> None:
    await _put(store, "expired", "deleted")
    await store.take("deleted")
    await harness.elapse(61)
    assert [blob.ref for blob in await store.take_expired(retry_seconds=200)] == ["expired"]
    await harness.elapse(150)
    assert [blob.ref for blob in await store.take_expired(retry_seconds=200)] == ["deleted"]
    await harness.elapse(100)
    assert [blob.ref for blob in await store.take_expired(retry_seconds=200)] == ["expired"]
    assert await store.forget(["expired", "deleted"]) == 2
    await harness.elapse(1000)
    assert await store.take_expired() == []


async def test_a_pin_that_races_take_expired_wins_or_fails_loudly(
    harness: Harness, store: BlobIndex
) -> None:
    refs = [f"r{n}" for n in range(20)]
    await _put(store, *refs)

    async def age_and_take() -> list[IndexedBlob]:
        await harness.elapse(61)
        return await store.take_expired()

    pins = [store.pin(ref) for ref in refs]
    *early, taken = await asyncio.gather(*pins[:10], age_and_take(), return_exceptions=True)
    late = await asyncio.gather(*pins[10:], return_exceptions=True)
    assert isinstance(taken, list)
    gone = {blob.ref for blob in taken} | {blob.ref for blob in await store.take_expired()}
    for ref, outcome in zip(refs, [*early, *late], strict=True):
        assert (ref in gone) is isinstance(outcome, NotFoundError)
        assert (await store.get(ref) is None) is (ref in gone)


async def test_forget_removes_what_was_taken_and_counts_it(
    harness: Harness, store: BlobIndex
) -> None:
    before = await harness.raw(CONTRACT)
    await _put(store, "r1", "r2")
    await store.take("r1")
    await harness.elapse(61)
    await store.take_expired()
    assert await store.forget(["r1", "r2", "r1", "nothing"]) == 2
    assert await store.forget(["r1", "r2"]) == 0
    assert await harness.raw(CONTRACT) == before


async def test_forget_leaves_alone_what_was_not_taken(harness: Harness, store: BlobIndex) -> None:
    await _put(store, "live", "expired")
    await store.pin("live")
    await harness.elapse(61)
    assert await store.forget(["live", "expired"]) == 0
    assert await store.get("live") is not None
    assert [blob.ref for blob in await store.take_expired()] == ["expired"]


async def test_condemn_returns_the_keys_that_no_ref_uses(
    harness: Harness, store: BlobIndex
) -> None:
    await _put(store, "live", "expired", "taken")
    await store.pin("live")
    await store.take("taken")
    await harness.elapse(61)
    used = ["key of live", "key of expired", "key of taken"]
    assert await store.condemn(["orphan 2", *used, "orphan 1"]) == ["orphan 2", "orphan 1"]
    assert await store.condemn([]) == []


async def test_a_condemned_key_can_never_be_put(harness: Harness, store: BlobIndex) -> None:
    await store.condemn(["key"])
    await harness.elapse(10**8)
    with pytest.raises(ConflictError):
        await store.put("r1", "key", **FACTS)
    assert await store.get("r1") is None


async def test_condemn_is_idempotent(store: BlobIndex) -> None:
    assert await store.condemn(["key", "key"]) == ["key"]
    assert await store.condemn(["key"]) == ["key"]


async def test_a_put_that_races_condemn_wins_or_fails_loudly(store: BlobIndex) -> None:
    keys = [f"key {n}" for n in range(20)]
    outcomes = await asyncio.gather(
        *(store.put(f"r{n}", key, **FACTS) for n, key in enumerate(keys[:10])),
        store.condemn(keys),
        *(store.put(f"r{n}", key, **FACTS) for n, key in enumerate(keys[10:], 10)),
        return_exceptions=True,
    )
    condemned = outcomes.pop(10)
    assert isinstance(condemned, list)
    for n, outcome in enumerate(outcomes):
        assert isinstance(outcome, ConflictError if keys[n] in condemned else BlobInfo)
        assert (await store.get(f"r{n}") is None) is (keys[n] in condemned)
