"""What every ``ItemStore`` promises about whom items are about."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.items import ItemStore
from holdfast.testing.harness import Harness
from holdfast.testing.test_items import EAST
from holdfast.values.errors import InvalidInputError
from holdfast.values.items import ItemKey, ItemPut

CONTRACT = "items"
pytestmark = pytest.mark.asyncio(loop_scope="session")
ONE, TWO = ItemKey(("a",), "one"), ItemKey(("a", "b"), "two")


async def _subjects(store: ItemStore) -> list[str]:
    """The subjects of both items, by each way to read them."""
    several = [one and one.subject for one in await store.get_many([ONE, TWO])]
    for refresh in (False, True):
        alone = [await store.get_many([at], refresh=refresh) for at in (ONE, TWO)]
        assert [one and one.subject for [one] in alone] == several
        again = await store.get_many([ONE, TWO], refresh=refresh)
        assert [one and one.subject for one in again] == several
        for vector in (None, EAST):
            hits = await store.search(("a",), vector=vector, refresh=refresh)
            found = {hit.item.key: hit.item.subject for hit in hits}
            assert [found["one"], found["two"]] == several
    return [str(one) for one in several]


async def test_an_item_has_the_subject_of_its_last_put(harness: Harness, store: ItemStore) -> None:
    await store.put_many(
        [
            ItemPut(*ONE, {}, vectors=[EAST], subject="bjørn/2"),
            ItemPut(*TWO, {}, ttl_seconds=60),
        ]
    )
    assert await _subjects(store) == ["bjørn/2", ""]
    await harness.reopen()
    store = harness.store(CONTRACT)
    assert await _subjects(store) == ["bjørn/2", ""]
    await store.put_many([ItemPut(*ONE, {}), ItemPut(*TWO, {}, ttl_seconds=60, subject="ana")])
    assert await _subjects(store) == ["", "ana"]


async def test_a_subject_that_is_not_an_id_or_of_a_delete_is_refused_and_nothing_is_written(
    store: ItemStore,
) -> None:
    wrong: Any
    for wrong in ("x" * 600, "holdfast.x", 5, None):
        with pytest.raises(InvalidInputError) as caught:
            await store.put_many([ItemPut(*TWO, {}), ItemPut(*ONE, {}, subject=wrong)])
        assert caught.value.field == "puts[1].subject"
    with pytest.raises(InvalidInputError, match=r"puts\[0\]\.subject"):
        await store.put_many([ItemPut(*ONE, None, subject="ana")])
    assert await store.get_many([ONE, TWO]) == [None, None]
