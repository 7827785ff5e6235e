"""What every ``Graph`` promises about walks."""

from __future__ import annotations

import pytest

from holdfast.contracts.graph import Graph
from holdfast.values.errors import InvalidInputError
from holdfast.values.graph import Entity, Relationship, SubGraph

CONTRACT = "graph"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _draw(store: Graph, *edges: str) -> None:
    """Edges such as ``"a likes b"``, each with itself as its id, and their ends."""
    parts = [edge.split() for edge in edges]
    names = dict.fromkeys(end for source, _, target in parts for end in (source, target))
    await store.add_entities([Entity("Node", {}, name) for name in names])
    await store.add_relationships(
        [
            Relationship(source, target, kind, {}, edge)
            for edge, (source, kind, target) in zip(edges, parts, strict=True)
        ]
    )


def _entities(found: SubGraph) -> list[str]:
    return [entity.id for entity in found.entities]


def _edges(found: SubGraph) -> list[str]:
    return [relationship.id for relationship in found.relationships]


async def test_a_walk_is_undirected_by_default(store: Graph) -> None:
    await _draw(store, "a to b", "c to b")
    found = await store.get_neighbors("b")
    assert _entities(found) == ["b", "a", "c"]
    assert _entities(await store.get_neighbors("a", depth=2)) == ["a", "b", "c"]
    assert await store.get_neighbors("b", direction="both") == found


async def test_a_walk_out_follows_relationships_from_source_to_target(store: Graph) -> None:
    await _draw(store, "a to b", "b to c", "d to b")
    assert _entities(await store.get_neighbors("b", depth=9, direction="out")) == ["b", "c"]
    assert _entities(await store.get_neighbors("a", depth=9, direction="out")) == ["a", "b", "c"]
    assert _entities(await store.get_neighbors("c", depth=9, direction="out")) == ["c"]


async def test_a_walk_in_follows_relationships_from_target_to_source(store: Graph) -> None:
    await _draw(store, "a to b", "b to c", "d to b")
    assert _entities(await store.get_neighbors("b", direction="in")) == ["b", "a", "d"]
    assert _entities(await store.get_neighbors("c", depth=9, direction="in")) == [
        "c",
        "b",
        "a",
        "d",
    ]
    assert _entities(await store.get_neighbors("a", depth=9, direction="in")) == ["a"]


async def test_the_start_entity_is_in_the_result(store: Graph) -> None:
    await _draw(store, "z to a")
    assert _entities(await store.get_neighbors("z")) == ["z", "a"]
    await store.add_entities([Entity("Node", {}, "alone")])
    assert _entities(await store.get_neighbors("alone", depth=3)) == ["alone"]


async def test_an_unknown_start_gives_an_empty_result(store: Graph) -> None:
    await _draw(store, "a to b")
    assert await store.get_neighbors("nobody") == SubGraph((), ())
    assert await store.get_neighbors("a to b", limit=0) == SubGraph((), ())


async def test_a_depth_of_zero_is_the_entity_alone(store: Graph) -> None:
    await _draw(store, "a to b", "a to a")
    found = await store.get_neighbors("a", depth=0)
    assert (_entities(found), _edges(found)) == (["a"], ["a to a"])
    assert found.truncated is False


async def test_a_walk_goes_as_many_steps_as_its_depth(store: Graph) -> None:
    await _draw(store, "a to b", "b to c", "c to d", "d to e")
    assert _entities(await store.get_neighbors("a")) == ["a", "b"]
    assert _entities(await store.get_neighbors("a", depth=2)) == ["a", "b", "c"]
    assert _entities(await store.get_neighbors("a", depth=3)) == ["a", "b", "c", "d"]
    assert _entities(await store.get_neighbors("a", depth=10)) == ["a", "b", "c", "d", "e"]


async def test_a_negative_depth_is_refused(store: Graph) -> None:
    for depth in (-1, 1.5, None, True):
        with pytest.raises(InvalidInputError) as refused:
            await store.get_neighbors("a", depth=depth)  # type: ignore[arg-type]
        assert refused.value.field == "depth"


async def test_a_walk_over_a_cycle_ends(store: Graph) -> None:
    await _draw(store, "a to b", "b to c", "c to a", "c to c")
    for direction in ("both", "out", "in"):
        found = await store.get_neighbors("a", depth=10, direction=direction)
        assert sorted(_entities(found)) == ["a", "b", "c"]
        assert _edges(found) == ["a to b", "b to c", "c to a", "c to c"]


async def test_relationship_types_narrows_the_walk_and_the_result(store: Graph) -> None:
    await _draw(store, "a likes b", "a knows b", "a knows c", "b likes d", "c likes d")
    found = await store.get_neighbors("a", depth=3, relationship_types=["likes"])
    assert (_entities(found), _edges(found)) == (
        ["a", "b", "d", "c"],
        ["a likes b", "b likes d", "c likes d"],
    )
    found = await store.get_neighbors("a", relationship_types=["likes", "knows", "nothing"])
    assert (_entities(found), _edges(found)) == (
        ["a", "b", "c"],
        ["a knows b", "a knows c", "a likes b"],
    )


async def test_an_empty_list_of_relationship_types_matches_none(store: Graph) -> None:
    await _draw(store, "a likes b", "a likes a")
    found = await store.get_neighbors("a", relationship_types=[])
    assert (_entities(found), _edges(found)) == (["a"], [])


async def test_all_relationships_between_the_returned_entities_are_returned(
    store: Graph,
) -> None:
    await _draw(store, "a to b", "a to c", "b to c", "c to b", "c to d", "c to c")
    found = await store.get_neighbors("a", direction="out")
    assert _entities(found) == ["a", "b", "c"]
    assert _edges(found) == ["a to b", "a to c", "b to c", "c to b", "c to c"]


async def test_entities_are_ordered_by_distance_and_then_by_id_relationships_by_id(
    store: Graph,
) -> None:
    await _draw(store, "m to é", "m to Z", "m to b", "Z to a", "b to Y", "é to a")
    found = await store.get_neighbors("m", depth=2)
    assert _entities(found) == ["m", "Z", "b", "é", "Y", "a"]
    assert _edges(found) == ["Z to a", "b to Y", "m to Z", "m to b", "m to é", "é to a"]


async def test_a_limit_caps_the_result_and_truncated_says_so(store: Graph) -> None:
    await _draw(store, "m to c", "m to a", "m to b", "a to z", "a to b")
    found = await store.get_neighbors("m", depth=2, limit=3)
    assert (_entities(found), _edges(found)) == (["m", "a", "b"], ["a to b", "m to a", "m to b"])
    assert found.truncated is True
    found = await store.get_neighbors("m", depth=2, limit=5)
    assert (_entities(found), found.truncated) == (["m", "a", "b", "c", "z"], False)
    found = await store.get_neighbors("m", depth=1, limit=4)
    assert (_entities(found), found.truncated) == (["m", "a", "b", "c"], False)
    with pytest.raises(InvalidInputError):
        await store.get_neighbors("m", limit=-1)


async def test_a_limit_of_zero_is_an_empty_result(store: Graph) -> None:
    await _draw(store, "a to b")
    assert await store.get_neighbors("a", limit=0) == SubGraph((), (), truncated=True)


async def test_an_unknown_direction_is_refused(store: Graph) -> None:
    for direction in ("up", "", "OUT", None):
        with pytest.raises(InvalidInputError) as refused:
            await store.get_neighbors("a", direction=direction)  # type: ignore[arg-type]
        assert refused.value.field == "direction"
