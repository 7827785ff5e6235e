"""What every ``Graph`` promises about the list of an entity's relationships, and their number."""

from __future__ import annotations

import pytest

from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError
from holdfast.values.graph import Entity, Relationship

CONTRACT = "graph"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _hub(graph: KnowledgeGraph, *ids: str) -> list[Relationship]:
    """An entity with relationships to another one, in the order of the given ids."""
    await graph.add_entities([Entity("Hub", {}, "hub"), Entity("Leaf", {}, "leaf")])
    made = [Relationship("hub", "leaf", "has", {"n": 1.0}, one) for one in ids]
    await graph.add_relationships(made)
    return made


async def test_relationships_of_an_entity_are_listed_by_code_points_of_their_ids(
    harness: Harness, store: KnowledgeGraph
) -> None:
    small, large = await _hub(store, "b", "Z")
    theirs = harness.store(CONTRACT, tenant="acme")
    await _hub(theirs, "theirs")
    assert await store.list_relationships("hub") == [large, small]
    assert await store.list_relationships("leaf") == [large, small]
    await store.delete_relationship("Z")
    assert await store.list_relationships("hub") == [small]


async def test_a_limit_and_after_select_a_page_of_the_relationships(
    store: KnowledgeGraph,
) -> None:
    names = ["a", "\xe9", "holdfast/", "z", "\U0010ffff"]
    await _hub(store, *names)
    seen: list[str] = []
    page = await store.list_relationships("hub", limit=2)
    while page:
        seen += [one.id for one in page]
        page = await store.list_relationships("hub", limit=2, after=page[-1].id)
    assert seen == sorted(names)
    assert await store.list_relationships("hub", limit=0) == []
    with pytest.raises(InvalidInputError) as refused:
        await store.list_relationships("hub", limit=-1)
    assert refused.value.field == "limit"
    ana = store.for_owner(OwnerScope("ana"))
    with pytest.raises(InvalidInputError) as refused:
        await ana.list_relationships("hub", after="holdfast.owner:3:bob:a")
    assert refused.value.field == "after"


async def test_relationships_of_an_entity_are_listed_by_type_and_direction(
    store: KnowledgeGraph,
) -> None:
    await store.add_entities([Entity("P", {}, name) for name in ("a", "b")])
    there = Relationship("a", "b", "knows", {}, "r1")
    back = Relationship("b", "a", "likes", {}, "r2")
    loop = Relationship("a", "a", "knows", {}, "r3")
    await store.add_relationships([there, back, loop])
    assert await store.list_relationships("a") == [there, back, loop]
    assert await store.list_relationships("a", direction="out") == [there, loop]
    assert await store.list_relationships("a", direction="in") == [back, loop]
    assert await store.list_relationships("a", relationship_types=["likes"]) == [back]
    assert await store.list_relationships("a", relationship_types=[]) == []
    with pytest.raises(InvalidInputError) as refused:
        await store.list_relationships("a", direction="up")  # type: ignore[arg-type]
    assert refused.value.field == "direction"


async def test_relationships_of_an_unknown_entity_are_none(store: KnowledgeGraph) -> None:
    await _hub(store, "r1")
    ana = store.for_owner(OwnerScope("ana"))
    assert await store.list_relationships("nobody") == []
    assert await ana.list_relationships("hub") == []
    own = await _hub(ana, "r1")
    assert await ana.list_relationships("hub") == own


async def test_degrees_counts_the_relationships_of_each_entity_and_zero_for_an_unknown_one(
    store: KnowledgeGraph,
) -> None:
    await _hub(store, "r1", "r2")
    await store.add_relationships([Relationship("hub", "hub", "has", {}, "loop")])
    assert await store.degrees(["leaf", "nobody", "hub", "leaf"]) == [2, 0, 3, 2]
    assert await store.degrees([]) == []
    ana = store.for_owner(OwnerScope("ana"))
    assert await ana.degrees(["hub"]) == [0]
    with pytest.raises(InvalidInputError) as refused:
        await store.degrees([""])
    assert refused.value.field == "entity_ids[0]"
