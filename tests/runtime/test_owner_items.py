"""Items in the view of one owner."""

from __future__ import annotations

import pytest

from holdfast import State
from holdfast.errors import VersionConflictError
from holdfast.items import ItemKey, ItemPut
from holdfast.values.ids import new_ref
from holdfast.values.owners import owned_id

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOTES = ("notes",)
KEY = ItemKey(NOTES, "n1")


@pytest.fixture
def state(wired: State) -> State:
    """A state of each wiring."""
    return wired


async def test_items_are_each_owners_own(state: State) -> None:
    ana, bob = state.for_owner("ana"), state.for_owner("bob", memory="shared")
    [version] = await ana.items.put_many([ItemPut(NOTES, "n1", {"gold": 1}, [[1.0, 0.0]])])
    for other in (bob, state, state.for_owner(""), state.for_owner("an")):
        assert await other.items.get_many([KEY], refresh=True) == [None]
        assert await other.items.search(()) == []
        assert await other.items.search((), vector=[1.0, 0.0], filter={"gold": 1}) == []
        assert await other.items.list_namespaces() == []
        with pytest.raises(VersionConflictError):
            await other.items.put_many([ItemPut(NOTES, "n1", {}, expected_version=version)])
        await other.items.put_many([ItemPut(NOTES, "n1", {"lead": 1}, expected_version=0)])
        assert [hit.item.value for hit in await other.items.search(())] == [{"lead": 1}]
        await other.items.put_many([ItemPut(NOTES, "n1", None)])
    [found] = await ana.items.get_many([KEY])
    assert found is not None
    assert (found.value, found.version) == ({"gold": 1}, version)
    assert await ana.items.list_namespaces() == [NOTES]
    await ana.items.put_many([ItemPut(NOTES, "n1", None)])


async def test_a_label_or_a_key_that_looks_like_a_stored_id_is_a_label_or_a_key(
    state: State,
) -> None:
    ana = state.for_owner("ana")
    await ana.items.put_many([ItemPut(NOTES, "n1", {"gold": 1})])
    for other in (state, state.for_owner("bob")):
        for at in (
            ItemKey((owned_id("ana", "notes"),), "n1"),
            ItemKey((owned_id("ana", ""), "notes"), "n1"),
            ItemKey(NOTES, owned_id("ana", "n1")),
        ):
            assert await other.items.get_many([at]) == [None]
            await other.items.put_many([ItemPut(*at, {"lead": 1})])
            await other.items.put_many([ItemPut(*at, None)])
    assert [hit.item.value for hit in await ana.items.search(())] == [{"gold": 1}]
    await ana.items.put_many([ItemPut(NOTES, "n1", None)])


async def test_the_longest_ids_are_stored(state: State) -> None:
    long = new_ref().ljust(512, "x")
    ana = state.for_tenant(long).for_owner("a" * 512)
    path = tuple(f"{at:02}".ljust(32, "y") for at in range(32))
    await ana.items.put_many([ItemPut(path, long, {"n": 1}), ItemPut(path[:31], long, {"n": 2})])
    assert [hit.item.value["n"] for hit in await ana.items.search(path[:30])] == [1, 2]
    assert await ana.items.list_namespaces(suffix=path) == [path]
