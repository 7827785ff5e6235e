"""What every ``ItemStore`` promises about puts, reads and versions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.items import ItemStore
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError, VersionConflictError
from holdfast.values.items import Item, ItemHit, ItemKey, ItemPut

CONTRACT = "items"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = ("users", "ana")
EAST, NORTH, WEST = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]


def put(key: str, value: Any = None, **more: Any) -> ItemPut:
    """An item of Ana's."""
    return ItemPut(ANA, key, {"k": key} if value is None else value, **more)


def gone(key: str, **more: Any) -> ItemPut:
    """The delete of an item of Ana's."""
    return ItemPut(ANA, key, None, **more)


async def read(store: ItemStore, key: str, namespace: Any = ANA) -> Item | None:
    """One item."""
    [found] = await store.get_many([ItemKey(namespace, key)])
    return found


async def values(store: ItemStore) -> dict[str, Any]:
    """All items, by key."""
    hits = await store.search((), limit=1000)
    return {hit.item.key: hit.item.value for hit in hits}


def keys(hits: list[ItemHit]) -> list[str]:
    """The keys of hits, in order."""
    return [hit.item.key for hit in hits]


async def found(store: ItemStore) -> list[str]:
    """What is seen in each way: it must be the same."""
    listed = await store.list_namespaces()
    hits = await store.search((), limit=100)
    near = await store.search((), vector=EAST, limit=100)
    single = await store.get_many([ItemKey(ANA, key) for key in "abcde"])
    seen = [sorted(keys(hits)), sorted(keys(near)), [one.key for one in single if one]]
    assert seen[0] == seen[1] == seen[2]
    assert listed == ([ANA] if seen[0] else [])
    return seen[0]


async def test_an_item_comes_back_as_it_was_put(store: ItemStore) -> None:
    [version] = await store.put_many([put("a", {"city": "Riga", "tags": ["x", None]})])
    found = await read(store, "a")
    assert found is not None
    assert found.created_at == found.updated_at
    assert found.created_at.tzinfo is not None
    expected = Item(
        ANA, "a", {"city": "Riga", "tags": ["x", None]}, version, found.created_at, found.created_at
    )
    assert found == expected
    assert version > 0


async def test_an_unknown_item_is_none(store: ItemStore) -> None:
    assert await read(store, "a") is None
    await store.put_many([put("a")])
    assert await read(store, "A") is None
    assert await read(store, "a", ("users",)) is None
    assert await read(store, "a", ("users", "ben")) is None
    assert await read(store, "a", (*ANA, "x")) is None


async def test_get_many_returns_items_in_the_order_of_the_keys(store: ItemStore) -> None:
    other = ItemPut(("b",), "a", {"k": "other"})
    await store.put_many([put("a"), put("b"), put("c"), other])
    keys = [ItemKey(ANA, key) for key in ("c", "x", "a", "b", "c")] + [ItemKey(("b",), "a")]
    found = await store.get_many(keys)
    assert [one and one.value["k"] for one in found] == ["c", None, "a", "b", "c", "other"]


async def test_a_value_comes_back_exactly_as_it_went_in(store: ItemStore) -> None:
    odd = {
        "b": 1,
        "a": [None, 1e16, -0.0, 1.0, True, 2**63 - 1, "\x00\x01", "\U0001f980"],
        "": {"z": {}, "y": []},
        "\x00": "e\u0301",
    }
    await store.put_many([put("a", odd), put("empty", {})])
    for found in (await read(store, "a"), *[h.item for h in await store.search((), offset=1)]):
        assert found is not None
        assert repr(found.value) == repr(odd)
    empty = await read(store, "empty")
    assert empty is not None
    assert empty.value == {}


async def test_a_put_replaces_the_whole_item(store: ItemStore) -> None:
    await store.put_many([put("a", {"x": 1, "y": {"z": 1}})])
    await store.put_many([put("a", {"y": {}})])
    assert await values(store) == {"a": {"y": {}}}


async def test_an_overwrite_keeps_created_at_and_sets_updated_at(
    store: ItemStore, harness: Harness
) -> None:
    await store.put_many([put("a")])
    first = await read(store, "a")
    await harness.elapse(10)
    await store.put_many([put("a", {"n": 2})])
    second = await read(store, "a")
    assert first is not None
    assert second is not None
    assert second.created_at == first.created_at
    assert 10 <= (second.updated_at - first.updated_at).total_seconds() < 1000
    await store.put_many([gone("a")])
    await store.put_many([put("a")])
    third = await read(store, "a")
    assert third is not None
    assert third.created_at >= second.updated_at


async def test_a_value_of_none_deletes_the_item(store: ItemStore) -> None:
    await store.put_many([put("a"), put("b")])
    await store.put_many([gone("a")])
    assert await values(store) == {"b": {"k": "b"}}
    assert await read(store, "a") is None


async def test_deleting_an_item_that_is_not_there_does_nothing(store: ItemStore) -> None:
    assert await store.put_many([gone("a")]) == [0]
    await store.put_many([put("b")])
    assert await store.put_many([gone("a"), ItemPut(("x",), "y", None)]) == [0, 0]
    assert await values(store) == {"b": {"k": "b"}}
    assert await store.list_namespaces() == [ANA]


async def test_put_many_returns_the_versions_in_the_order_of_the_puts_and_zero_for_a_delete(
    store: ItemStore,
) -> None:
    await store.put_many([put("b")])
    versions = await store.put_many([put("z"), gone("b"), put("a"), ItemPut(("a",), "m", {})])
    keys = [ItemKey(ANA, "z"), ItemKey(ANA, "b"), ItemKey(ANA, "a"), ItemKey(("a",), "m")]
    found = await store.get_many(keys)
    assert versions == [one.version if one else 0 for one in found]
    assert len(set(versions)) == 4


async def test_each_put_gives_a_higher_version(store: ItemStore) -> None:
    versions = []
    for value in ({"n": 1}, {"n": 1}, {"n": 2}):
        versions += await store.put_many([put("a", value)])
    assert 0 < versions[0] < versions[1] < versions[2]


async def test_a_version_is_never_used_again_after_a_delete(store: ItemStore) -> None:
    [first] = await store.put_many([put("a")])
    await store.put_many([gone("a")])
    [second] = await store.put_many([put("a")])
    assert second > first


async def test_all_puts_of_a_call_are_done_or_none(store: ItemStore) -> None:
    await store.put_many([put("b"), put("d")])
    for bad in (put("c", expected_version=7), put("c", {"x": float("nan")})):
        with pytest.raises((VersionConflictError, InvalidInputError)):
            await store.put_many([put("a"), gone("b"), bad, put("d", {"n": 2}), put("e")])
        assert await values(store) == {"b": {"k": "b"}, "d": {"k": "d"}}
    await store.put_many([put("a"), gone("b"), put("c"), put("d", {"n": 2})])
    assert await values(store) == {"a": {"k": "a"}, "c": {"k": "c"}, "d": {"n": 2}}


async def test_the_same_item_twice_in_a_call_is_refused_and_nothing_is_written(
    store: ItemStore,
) -> None:
    for second in (put("a", {"n": 2}), gone("a")):
        with pytest.raises(InvalidInputError, match="twice") as caught:
            await store.put_many([put("a"), put("b"), second])
        assert caught.value.field == "puts[2]"
    assert await values(store) == {}


async def test_a_put_with_the_expected_version_is_done(store: ItemStore) -> None:
    [first] = await store.put_many([put("a")])
    [second] = await store.put_many([put("a", {"n": 2}, expected_version=first)])
    await store.put_many([put("a", {"n": 3}, expected_version=second)])
    assert await values(store) == {"a": {"n": 3}}


async def test_a_put_with_another_expected_version_is_a_version_conflict_and_nothing_is_written(
    store: ItemStore,
) -> None:
    [version] = await store.put_many([put("a")])
    for expected in (version + 1, 1 << 62):
        with pytest.raises(VersionConflictError) as caught:
            await store.put_many([put("a", {"n": 2}, expected_version=expected)])
        assert (caught.value.expected, caught.value.actual) == (expected, version)
        assert (caught.value.kind, caught.value.key) == ("item", "users/ana/a")
    with pytest.raises(VersionConflictError) as caught:
        await store.put_many([put("b", expected_version=version)])
    assert caught.value.actual == 0
    assert await values(store) == {"a": {"k": "a"}}


async def test_an_expected_version_of_zero_means_that_there_must_be_no_item_yet(
    store: ItemStore,
) -> None:
    await store.put_many([put("a", expected_version=0)])
    with pytest.raises(VersionConflictError):
        await store.put_many([put("a", {"n": 2}, expected_version=0)])
    await store.put_many([gone("a")])
    await store.put_many([put("a", {"n": 3}, expected_version=0)])
    assert await values(store) == {"a": {"n": 3}}


async def test_a_delete_has_an_expected_version_too(store: ItemStore) -> None:
    [version] = await store.put_many([put("a")])
    for expected in (0, version + 1):
        with pytest.raises(VersionConflictError):
            await store.put_many([gone("a", expected_version=expected)])
    assert await values(store) == {"a": {"k": "a"}}
    assert await store.put_many([gone("a", expected_version=version)]) == [0]
    assert await store.put_many([gone("a", expected_version=0)]) == [0]
    assert await values(store) == {}


async def test_a_put_with_an_expected_version_that_is_repeated_is_a_version_conflict(
    store: ItemStore,
) -> None:
    [first] = await store.put_many([put("a", expected_version=0)])
    with pytest.raises(VersionConflictError):
        await store.put_many([put("a", expected_version=0)])
    delete = [gone("a", expected_version=first)]
    await store.put_many(delete)
    with pytest.raises(VersionConflictError):
        await store.put_many(delete)


async def test_of_many_writers_who_expect_the_same_version_one_wins(store: ItemStore) -> None:
    [version] = await store.put_many([put("b")])
    for key, expected in (("a", 0), ("b", version)):
        tries = (put(key, {"n": at}, expected_version=expected) for at in range(20))
        done = await asyncio.gather(
            *(store.put_many([one]) for one in tries), return_exceptions=True
        )
        won = [at for at, one in enumerate(done) if not isinstance(one, BaseException)]
        assert len(won) == 1
        assert sum(isinstance(one, VersionConflictError) for one in done) == 19
        assert (await values(store))[key] == {"n": won[0]}


async def test_a_negative_expected_version_is_refused(store: ItemStore) -> None:
    bad: Any
    for bad in (-1, True, 1.0, "1", 1 << 63):
        with pytest.raises(InvalidInputError, match=r"puts\[0\]\.expected_version"):
            await store.put_many([put("a", expected_version=bad)])
    assert await values(store) == {}


async def test_a_put_that_is_repeated_leaves_the_same_item(store: ItemStore) -> None:
    call = [put("a", {"n": 1}), gone("b"), put("c", vectors=[[1.0, 0.0]])]
    await store.put_many([put("b")])
    await store.put_many(call)
    before = await values(store)
    await store.put_many(call)
    assert await values(store) == before == {"a": {"n": 1}, "c": {"k": "c"}}
    assert len(await store.search((), vector=[1.0, 0.0])) == 2


async def test_concurrent_calls_with_the_same_items_are_each_done_as_a_whole(
    store: ItemStore,
) -> None:
    keys = [f"k{at}" for at in range(8)]

    async def write(at: int) -> None:
        ordered = keys if at % 2 else keys[::-1]
        if at % 5 == 0:
            await store.put_many([gone(key) for key in ordered])
        else:
            await store.put_many([put(key, {"by": at}) for key in ordered])
            await store.get_many([ItemKey(ANA, key) for key in ordered], refresh=True)

    await asyncio.gather(*(write(at) for at in range(1, 41)))
    left = await values(store)
    assert left in ({}, dict.fromkeys(keys, next(iter(left.values()), None)))


async def test_an_empty_call_does_nothing(store: ItemStore) -> None:
    assert await store.put_many([]) == []
    assert await store.get_many([]) == []
    assert await store.list_namespaces() == []


async def test_a_call_with_too_many_items_is_refused(store: ItemStore) -> None:
    await store.put_many([put(f"k{at}") for at in range(1000)])
    with pytest.raises(InvalidInputError, match="at most 1000") as caught:
        await store.put_many([put(f"x{at}") for at in range(1001)])
    assert caught.value.field == "puts"
    with pytest.raises(InvalidInputError, match="at most 1000") as caught:
        await store.get_many([ItemKey(ANA, "a")] * 1001)
    assert caught.value.field == "keys"
    with pytest.raises(InvalidInputError, match="at most 256") as caught:
        await store.put_many([put("x", vectors=[[1.0]] * 257)])
    assert caught.value.field == "puts[0].vectors"
    large = [list(map(float, range(16_000)))] * 256
    with pytest.raises(InvalidInputError, match="numbers in all vectors"):
        await store.put_many([put("x", vectors=large), put("y", vectors=large)])
    wide = {"x": "y" * 1_000_000}
    with pytest.raises(InvalidInputError, match="bytes in all values"):
        await store.put_many([put(f"x{at}", wide) for at in range(68)])
    found = await store.get_many([ItemKey(ANA, f"k{at}") for at in range(1000)])
    assert [one and one.value["k"] for one in found] == [f"k{at}" for at in range(1000)]
    assert len(await store.search((), limit=2000)) == 1000


async def test_a_namespace_without_a_label_is_refused(store: ItemStore) -> None:
    with pytest.raises(InvalidInputError, match="must have a label") as caught:
        await store.put_many([ItemPut((), "a", {})])
    assert caught.value.field == "puts[0].namespace"
    with pytest.raises(InvalidInputError, match=r"keys\[0\]\.namespace"):
        await store.get_many([ItemKey((), "a")])


async def test_a_namespace_that_is_too_deep_or_too_long_is_refused(store: ItemStore) -> None:
    deepest, longest = ("a",) * 32, ("\U0010ffff" * 128, "\U0010ffff" * 128)
    await store.put_many([ItemPut(deepest, "a", {}), ItemPut(longest, "a", {})])
    for bad, why in (((*deepest, "a"), "at most 32"), ((*longest, "a"), "at most 1024")):
        with pytest.raises(InvalidInputError, match=why) as caught:
            await store.put_many([put("x"), ItemPut(bad, "a", {})])
        assert caught.value.field == "puts[1].namespace"
        with pytest.raises(InvalidInputError, match=why):
            await store.get_many([ItemKey(bad, "a")])
        with pytest.raises(InvalidInputError, match=why):
            await store.search(bad)
        with pytest.raises(InvalidInputError, match=why):
            await store.list_namespaces(suffix=bad)
    assert await store.list_namespaces() == [deepest, longest]
    assert len(await store.search(longest)) == 1
    assert len(await store.search(longest[:1])) == 1


async def test_a_key_or_a_label_that_is_not_an_id_is_refused(store: ItemStore) -> None:
    bad: Any
    for bad in ("", "a\n", "x" * 513, 7, None):
        for puts in ([ItemPut(ANA, bad, {})], [ItemPut(("users", bad), "a", {})]):
            with pytest.raises(InvalidInputError, match=r"puts\[0\]\."):
                await store.put_many(puts)
        with pytest.raises(InvalidInputError, match=r"keys\[0\]\."):
            await store.get_many([ItemKey(ANA, bad)])
        with pytest.raises(InvalidInputError, match=r"prefix\[0\]"):
            await store.search((bad,))
    for bad in ("users", {"users"}, None):
        with pytest.raises(InvalidInputError, match="namespace"):
            await store.put_many([ItemPut(bad, "a", {})])
    for bad in (None, "a", {"a": 1}, ItemPut(ANA, "a", {})):
        with pytest.raises(InvalidInputError, match="puts"):
            await store.put_many(bad)
    assert await values(store) == {}


async def test_a_value_that_is_not_a_json_object_is_refused_by_its_path_and_nothing_is_written(
    store: ItemStore,
) -> None:
    bad: Any
    for bad, field in (
        ([1], "puts[1].value"),
        ("x", "puts[1].value"),
        ({"a": {"b": float("nan")}}, "puts[1].value.a.b"),
        ({"a": [2**63]}, "puts[1].value.a[0]"),
        ({"a": b""}, "puts[1].value.a"),
        ({"x": "y" * (1 << 20)}, "puts[1].value"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await store.put_many([put("a"), put("b", bad)])
        assert caught.value.field == field
    assert await values(store) == {}


async def test_vectors_and_ttl_seconds_of_a_delete_are_refused(store: ItemStore) -> None:
    with pytest.raises(InvalidInputError, match=r"puts\[0\]\.vectors"):
        await store.put_many([gone("a", vectors=[[1.0]])])
    with pytest.raises(InvalidInputError, match=r"puts\[0\]\.ttl_seconds"):
        await store.put_many([gone("a", ttl_seconds=1)])
