"""What every ``Graph`` promises about whom entities and relationships are about."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.graph import Graph
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError
from holdfast.values.graph import Entity, Relationship

CONTRACT = "graph"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _subjects(store: Graph) -> dict[str, str]:
    """The subjects of all, by each way to read them."""
    walked = await store.get_neighbors("a")
    found = {one.id: one.subject for one in walked.entities}
    found |= {one.id: one.subject for one in walked.relationships}
    for listed in (await store.list_entities(), await store.find_entities(["a", "b"])):
        assert [(one.id, one.subject) for one in listed] == [
            (key, found[key]) for key in ("a", "b")
        ]
    assert [one.subject for one in await store.list_relationships("a")] == [found["r"]]
    return found


async def test_an_entity_and_a_relationship_have_the_subject_of_their_last_add(
    harness: Harness, store: Graph
) -> None:
    await store.add_entities([Entity("Person", {}, "a", "bjørn/2"), Entity("Person", {}, "b")])
    await store.add_relationships([Relationship("a", "b", "knows", {"n": 1}, "r", "ravi")])
    assert await _subjects(store) == {"a": "bjørn/2", "b": "", "r": "ravi"}
    await harness.reopen()
    store = harness.store(CONTRACT)
    assert await _subjects(store) == {"a": "bjørn/2", "b": "", "r": "ravi"}
    await store.add_entities([Entity("Person", {}, "a"), Entity("Person", {}, "b", "ravi")])
    await store.add_relationships([Relationship("a", "b", "knows", {}, "r")])
    assert await _subjects(store) == {"a": "", "b": "ravi", "r": ""}


async def test_a_subject_of_an_entity_or_a_relationship_that_is_not_an_id_is_refused(
    store: Graph,
) -> None:
    await store.add_entities([Entity("Person", {}, "a")])
    wrong: Any
    for wrong in ("x" * 600, "holdfast.x", 5, None):
        with pytest.raises(InvalidInputError) as caught:
            await store.add_entities([Entity("P", {}, "b"), Entity("P", {}, "c", subject=wrong)])
        assert caught.value.field == "entities[1].subject"
        with pytest.raises(InvalidInputError) as caught:
            await store.add_relationships([Relationship("a", "a", "is", {}, "r", wrong)])
        assert caught.value.field == "relationships[0].subject"
    assert [one.id for one in await store.list_entities()] == ["a"]
    assert await store.list_relationships("a") == []
