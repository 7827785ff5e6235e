"""What every ``ItemStore`` promises about expiry."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.items import ItemStore
from holdfast.testing.harness import Harness
from holdfast.testing.test_items import ANA, EAST, found, keys, put, read
from holdfast.values.errors import InvalidInputError, VersionConflictError
from holdfast.values.items import ItemKey

CONTRACT = "items"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_item_without_ttl_seconds_never_expires(
    store: ItemStore, harness: Harness
) -> None:
    await store.put_many([put("a")])
    await harness.elapse(10 * 365 * 86_400)
    assert await found(store) == ["a"]
    one = await read(store, "a")
    assert one is not None
    assert one.expires_at is None


async def test_an_item_expires_when_its_ttl_seconds_have_passed(
    store: ItemStore, harness: Harness
) -> None:
    await store.put_many([put("a", ttl_seconds=60, vectors=[EAST]), put("b", ttl_seconds=120)])
    one = await read(store, "a")
    assert one is not None
    assert one.expires_at is not None
    assert (one.expires_at - one.updated_at).total_seconds() == 60
    await harness.elapse(50)
    assert await found(store) == ["a", "b"]
    await harness.elapse(11)
    assert await found(store) == ["b"]
    await harness.elapse(60)
    assert await found(store) == []


async def test_a_put_starts_the_window_again_and_one_without_ttl_seconds_ends_it(
    store: ItemStore, harness: Harness
) -> None:
    await store.put_many([put("a", ttl_seconds=60), put("b", ttl_seconds=60)])
    await harness.elapse(50)
    await store.put_many([put("a", ttl_seconds=30), put("b")])
    await harness.elapse(25)
    assert await found(store) == ["a", "b"]
    await harness.elapse(6)
    assert await found(store) == ["b"]
    await harness.elapse(1000)
    assert await found(store) == ["b"]


async def test_get_many_starts_the_window_again_only_with_refresh(
    store: ItemStore, harness: Harness
) -> None:
    await store.put_many([put("a", ttl_seconds=60), put("b", ttl_seconds=60), put("c")])
    await harness.elapse(50)
    [a, c] = await store.get_many([ItemKey(ANA, "a"), ItemKey(ANA, "c")], refresh=True)
    await store.get_many([ItemKey(ANA, "b")])
    assert a is not None
    assert a.expires_at is not None
    assert 110 <= (a.expires_at - a.updated_at).total_seconds() < 1000
    assert c is not None
    assert c.expires_at is None
    assert await read(store, "a") == a
    await harness.elapse(11)
    assert await found(store) == ["a", "c"]
    await harness.elapse(50)
    assert await store.get_many([ItemKey(ANA, "a")], refresh=True) == [None]
    assert await found(store) == ["c"]


async def test_search_starts_the_windows_of_the_items_that_it_returns_again_only_with_refresh(
    store: ItemStore, harness: Harness
) -> None:
    cases = [(vector, page) for vector in (None, EAST) for page in ((2, 1), (10, 2))]
    for vector, (limit, offset) in cases:
        window = {"ttl_seconds": 60, "vectors": [EAST]}
        await store.put_many([put(key, **window) for key in "abcd"])
        await harness.elapse(50)
        await store.search(ANA, vector=vector, limit=4)
        assert await store.search(ANA, vector=vector, offset=4, refresh=True) == []
        hits = await store.search(ANA, vector=vector, limit=limit, offset=offset, refresh=True)
        assert keys(hits) == (["c", "b"] if limit == 2 else ["b", "a"])
        for hit in hits:
            assert hit.item.expires_at is not None
            assert 110 <= (hit.item.expires_at - hit.item.updated_at).total_seconds() < 1000
        await harness.elapse(11)
        assert await found(store) == sorted(keys(hits))


async def test_an_item_put_after_expiry_has_nothing_of_the_old_one(
    store: ItemStore, harness: Harness
) -> None:
    [old] = await store.put_many([put("a", ttl_seconds=60, vectors=[EAST])])
    before = await read(store, "a")
    await harness.elapse(61)
    with pytest.raises(VersionConflictError) as caught:
        await store.put_many([put("a", {"n": 1}, expected_version=old)])
    assert caught.value.actual == 0
    [version] = await store.put_many([put("a", {"n": 2}, expected_version=0)])
    assert version > old
    after = await read(store, "a")
    assert before is not None
    assert after is not None
    assert after.created_at > before.created_at
    assert after.expires_at is None
    assert [hit.score for hit in await store.search((), vector=EAST)] == [None]


async def test_a_ttl_seconds_of_zero_or_less_is_refused(store: ItemStore) -> None:
    bad: Any
    for bad in (0, -1, float("nan"), float("inf"), True, "60"):
        with pytest.raises(InvalidInputError, match=r"puts\[0\]\.ttl_seconds"):
            await store.put_many([put("a", ttl_seconds=bad)])
    assert await found(store) == []
