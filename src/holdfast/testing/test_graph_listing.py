"""What every ``Graph`` promises about its list of entities."""

from __future__ import annotations

import pytest

from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError
from holdfast.values.graph import Entity

CONTRACT = "graph"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _ids(graph: KnowledgeGraph) -> list[str | None]:
    """All ids, read in pages of two."""
    seen: list[str | None] = []
    page = await graph.list_entities(limit=2)
    while page:
        seen += [one.id for one in page]
        page = await graph.list_entities(limit=2, after=page[-1].id)
    return seen


async def test_entities_are_listed_by_code_points_of_their_ids(
    harness: Harness, store: KnowledgeGraph
) -> None:
    given = [Entity("Person", {"name": "Bo"}, "b"), Entity("Robot", {"n": 1.0}, "Z")]
    await store.add_entities(given)
    await harness.store(CONTRACT, tenant="acme").add_entities([Entity("Person", {}, "theirs")])
    assert await store.list_entities() == [given[1], given[0]]
    await store.delete_entity("Z")
    assert await store.list_entities() == [given[0]]


async def test_a_limit_and_after_select_a_page_of_the_entities(store: KnowledgeGraph) -> None:
    names = ["a", "é", "holdfast", "holdfast/", "z", "\U0010ffff"]
    await store.add_entities([Entity("Word", {}, name) for name in names])
    assert await _ids(store) == sorted(names)
    assert await store.list_entities(limit=0) == []
    assert [one.id for one in await store.list_entities(after="i")] == ["z", "é", names[-1]]
    with pytest.raises(InvalidInputError) as refused:
        await store.list_entities(limit=-1)
    assert refused.value.field == "limit"


async def test_entities_are_those_of_the_owner_who_asks_or_those_that_nobody_owns(
    store: KnowledgeGraph,
) -> None:
    ana, bob = (store.for_owner(OwnerScope(owner)) for owner in ("ana", "bob"))
    shared = store.for_owner(OwnerScope("cyd", memory="shared"))
    for graph, names in ((store, ("a", "z")), (ana, ("m", "n", "o")), (bob, ("m",))):
        await graph.add_entities([Entity("Word", {}, name) for name in names])
    assert await _ids(store) == await _ids(shared) == ["a", "z"]
    assert await _ids(ana) == ["m", "n", "o"]
    assert await _ids(bob) == ["m"]
    with pytest.raises(InvalidInputError) as refused:
        await ana.list_entities(after="holdfast.owner:3:bob:a")
    assert refused.value.field == "after"
