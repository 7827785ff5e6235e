"""What every ``ItemStore`` promises about namespaces, tenants and copies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.contracts.items import ItemStore
from holdfast.testing.harness import Harness
from holdfast.testing.test_items import ANA, EAST, found, gone, put, read, values
from holdfast.values.errors import InvalidInputError, VersionConflictError
from holdfast.values.items import ItemPut

CONTRACT = "items"
pytestmark = pytest.mark.asyncio(loop_scope="session")

PATHS = [
    *(("a",), ("a", "b"), ("a", "b", "v1"), ("a", "c", "v1"), ("a", "c", "v2")),
    *(("b", "a"), ("b", "v1"), ("é",), ("\uffff",), ("\U0001f980",)),
]


async def test_list_namespaces_lists_the_namespaces_that_have_items_by_code_points(
    store: ItemStore,
) -> None:
    assert await store.list_namespaces() == []
    await store.put_many([ItemPut(path, key, {}) for path in reversed(PATHS) for key in "xy"])
    assert await store.list_namespaces() == PATHS
    await store.put_many([ItemPut(("a", "b"), key, None) for key in "xy"])
    await store.put_many([ItemPut(("a",), "x", None)])
    assert await store.list_namespaces() == [one for one in PATHS if one != ("a", "b")]


async def test_a_prefix_and_a_suffix_of_list_namespaces_compare_labels_and_none_is_any_label(
    store: ItemStore,
) -> None:
    await store.put_many([ItemPut(path, "x", {}) for path in PATHS])
    asked: list[tuple[dict[str, Any], list[tuple[str, ...]]]] = [
        ({"prefix": ("a",)}, PATHS[:5]),
        ({"prefix": ("a", None)}, PATHS[1:5]),
        ({"prefix": (None, "a")}, [("b", "a")]),
        ({"prefix": (None, None, None)}, PATHS[2:5]),
        ({"suffix": ("v1",)}, [PATHS[2], PATHS[3], PATHS[6]]),
        ({"suffix": ("c", None)}, PATHS[3:5]),
        ({"suffix": (None, "v1")}, [PATHS[2], PATHS[3], PATHS[6]]),
        ({"prefix": ("a",), "suffix": ("v1",)}, [PATHS[2], PATHS[3]]),
        ({"prefix": ("a", "b"), "suffix": ("b", "v1")}, [PATHS[2]]),
        ({"prefix": ("v1",)}, []),
        ({"suffix": ("*",)}, []),
    ]
    for how, expected in asked:
        assert await store.list_namespaces(**how) == expected, how
    bad: Any
    for bad in ("a", None, [""], [7], ["a\n"]):
        with pytest.raises(InvalidInputError, match="prefix"):
            await store.list_namespaces(prefix=bad)
        with pytest.raises(InvalidInputError, match="suffix"):
            await store.list_namespaces(suffix=bad)


async def test_max_depth_cuts_the_namespaces_and_lists_each_once(store: ItemStore) -> None:
    await store.put_many([ItemPut(path, "x", {}) for path in PATHS])
    assert await store.list_namespaces(max_depth=1) == [
        *(("a",), ("b",), ("é",), ("\uffff",), ("\U0001f980",))
    ]
    two = await store.list_namespaces(prefix=("a",), max_depth=2)
    assert two == [("a",), ("a", "b"), ("a", "c")]
    for depth in (3, 32, 1 << 62):
        assert await store.list_namespaces(max_depth=depth) == PATHS
    assert await store.list_namespaces(suffix=("v2",), max_depth=1) == [("a",)]


async def test_a_max_depth_of_zero_is_refused(store: ItemStore) -> None:
    for bad in (0, -1, 1 << 63):
        with pytest.raises(InvalidInputError, match="max_depth"):
            await store.list_namespaces(max_depth=bad)


async def test_limit_and_offset_select_a_page_of_the_namespaces(store: ItemStore) -> None:
    await store.put_many([ItemPut(path, "x", {}) for path in PATHS])
    for limit, offset in ((1, 0), (3, 2), (100, 8), (2, 100), (1 << 62, 1)):
        page = await store.list_namespaces(limit=limit, offset=offset)
        assert page == PATHS[offset : offset + limit]
    assert await store.list_namespaces(max_depth=1, limit=1, offset=1) == [("b",)]


async def test_one_namespace_never_sees_anothers_items(store: ItemStore) -> None:
    await store.put_many([ItemPut(("a",), "x", {"n": 1}), ItemPut(("b",), "x", {"n": 2})])
    await store.put_many([ItemPut(("a",), "x", None)])
    other = await read(store, "x", ("b",))
    assert other is not None
    assert other.value == {"n": 2}
    assert await store.search(("a",)) == []


async def test_one_tenant_never_sees_anothers_items(harness: Harness) -> None:
    mine, other = harness.store("items"), harness.store("items", tenant="other")
    [version] = await mine.put_many([put("a", vectors=[EAST])])
    assert await found(other) == []
    with pytest.raises(VersionConflictError):
        await other.put_many([put("a", expected_version=version)])
    await other.put_many([put("a", {"theirs": True}, expected_version=0)])
    await other.put_many([gone("a")])
    assert await found(mine) == ["a"]
    assert await found(other) == []


async def test_what_a_store_returns_is_the_callers_to_mutate(store: ItemStore) -> None:
    await store.put_many([put("a", {"tags": ["x"]})])
    for one in (await read(store, "a"), (await store.search(()))[0].item):
        assert one is not None
        one.value["tags"].append("y")
        one.value["more"] = 1
    assert await values(store) == {"a": {"tags": ["x"]}}


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: ItemStore) -> None:
    value, vector = {"tags": ["x"]}, [1.0, 0.0]
    call = store.put_many([put("a", value, vectors=[vector])])
    await asyncio.gather(call)
    value["tags"].append("y")
    vector[:] = [-1.0, 0.0]
    [hit] = await store.search((), vector=EAST)
    assert (hit.item.value, hit.score) == ({"tags": ["x"]}, 1.0)


async def test_items_are_still_there_after_a_reopen(harness: Harness) -> None:
    store = harness.store("items")
    [version] = await store.put_many([put("a", vectors=[EAST], ttl_seconds=1000)])
    before = await read(store, "a")
    await harness.reopen()
    store = harness.store("items")
    assert await read(store, "a") == before
    assert [hit.score for hit in await store.search((), vector=EAST)] == [1.0]
    await store.put_many([put("a", {"n": 2}, expected_version=version)])
    assert await store.list_namespaces() == [ANA]
