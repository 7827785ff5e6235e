"""What every ``Graph`` promises about what it stores."""

from __future__ import annotations

import asyncio
import inspect
import math
from typing import Any

import pytest

from holdfast.contracts.cypher_graph import CypherCapable
from holdfast.contracts.graph import Graph
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.graph import Entity, Relationship, SubGraph

CONTRACT = "graph"
pytestmark = pytest.mark.asyncio(loop_scope="session")


def _people(*names: str) -> list[Entity]:
    return [Entity("Person", {"name": name.title()}, name) for name in names]


def _knows(source: str, target: str, id: str, type: str = "knows") -> Relationship:
    return Relationship(source, target, type, {}, id)


async def _all(store: Graph, start: str) -> tuple[list[str], list[str]]:
    """The ids of everything within reach."""
    found = await store.get_neighbors(start, depth=10)
    return [one.id for one in found.entities], [one.id for one in found.relationships]


async def test_entities_and_relationships_come_back_as_they_were_added(store: Graph) -> None:
    ravi = Entity("Person", {"name": "Ravi", "age": 40}, "ravi")
    project = Entity("Project", {}, "x")
    works = Relationship("ravi", "x", "works_on", {"since": 2020}, "r1")
    await store.add_entities([ravi, project])
    await store.add_relationships([works])
    assert await store.get_neighbors("ravi") == SubGraph((ravi, project), (works,))


async def test_add_entities_returns_the_ids_in_input_order(store: Graph) -> None:
    assert await store.add_entities(_people("c", "a", "b")) == ["c", "a", "b"]
    assert await store.add_entities(_people("z", "c", "a")) == ["z", "c", "a"]


async def test_add_relationships_returns_the_ids_in_input_order(store: Graph) -> None:
    await store.add_entities(_people("a", "b"))
    edges = [_knows("a", "b", name) for name in ("r3", "r1", "r2")]
    assert await store.add_relationships(edges) == ["r3", "r1", "r2"]


async def test_an_entity_or_a_relationship_without_an_id_gets_one(store: Graph) -> None:
    first, second = await store.add_entities([Entity("Person"), Entity("Person")])
    assert first != second
    [edge] = await store.add_relationships([Relationship(first, second, "knows")])
    assert await _all(store, first) == ([first, second], [edge])


async def test_add_entities_with_an_existing_id_replaces_it_and_keeps_its_relationships(
    store: Graph,
) -> None:
    await store.add_entities(_people("a", "b"))
    await store.add_relationships([_knows("a", "b", "r1"), _knows("b", "a", "r2")])
    await store.add_entities([Entity("Robot", {"model": 2}, "a")])
    found = await store.get_neighbors("a")
    assert found.entities[0] == Entity("Robot", {"model": 2}, "a")
    assert [one.id for one in found.relationships] == ["r1", "r2"]


async def test_add_relationships_with_an_existing_id_replaces_it_ends_included(
    store: Graph,
) -> None:
    await store.add_entities(_people("a", "b", "c"))
    await store.add_relationships([_knows("a", "b", "r1")])
    replaced = Relationship("b", "c", "likes", {"n": 1}, "r1")
    await store.add_relationships([replaced])
    assert await _all(store, "a") == (["a"], [])
    assert (await store.get_neighbors("b")).relationships == (replaced,)
    assert await _all(store, "c") == (["c", "b"], ["r1"])


async def test_the_same_id_twice_in_a_batch_is_refused_and_nothing_is_written(
    store: Graph,
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await store.add_entities(_people("a", "b", "a"))
    assert refused.value.field == "entities[2].id"
    assert await store.find_entities(["a", "b"]) == []
    await store.add_entities(_people("a", "b"))
    with pytest.raises(InvalidInputError) as refused:
        await store.add_relationships([_knows("a", "b", "r1"), _knows("b", "a", "r1")])
    assert refused.value.field == "relationships[1].id"
    assert await _all(store, "a") == (["a"], [])


async def test_an_empty_batch_does_nothing(store: Graph) -> None:
    assert await store.add_entities([]) == []
    assert await store.add_relationships([]) == []
    assert await store.find_entities([]) == []


async def test_a_batch_with_one_bad_entity_or_relationship_writes_nothing(
    store: Graph,
) -> None:
    entities: list[Any] = [
        Entity("", {}, "x"),
        Entity("Person", {"n": math.nan}, "x"),
        Entity("Person", {}, ""),
        {"id": "x"},
    ]
    for entity in entities:
        with pytest.raises(InvalidInputError) as refused:
            await store.add_entities([*_people("a"), entity])
        assert refused.value.field.startswith("entities[1]")
    assert await store.find_entities(["a"]) == []
    await store.add_entities(_people("a", "b"))
    relationships: list[Any] = [
        Relationship("a", "b", "", {}, "x"),
        Relationship("a", "b", "knows", {"n": math.inf}, "x"),
        Relationship("", "b", "knows", {}, "x"),
        ("a", "b"),
    ]
    for relationship in relationships:
        with pytest.raises(InvalidInputError) as refused:
            await store.add_relationships([_knows("a", "b", "r1"), relationship])
        assert refused.value.field.startswith("relationships[1]")
    assert await _all(store, "a") == (["a"], [])


async def test_a_relationship_to_a_missing_entity_is_refused_the_batch_with_it(
    store: Graph,
) -> None:
    await store.add_entities(_people("a", "b"))
    for missing in (_knows("a", "nobody", "r2"), _knows("nobody", "a", "r2")):
        with pytest.raises(NotFoundError) as refused:
            await store.add_relationships([_knows("a", "b", "r1"), missing])
        assert (refused.value.kind, refused.value.key) == ("entity", "nobody")
    assert await _all(store, "a") == (["a"], [])


async def test_parallel_edges_are_legal(store: Graph) -> None:
    await store.add_entities(_people("a", "b"))
    await store.add_relationships([_knows("a", "b", "r1"), _knows("a", "b", "r2")])
    assert await _all(store, "a") == (["a", "b"], ["r1", "r2"])


async def test_a_self_loop_is_legal(store: Graph) -> None:
    await store.add_entities(_people("a"))
    await store.add_relationships([_knows("a", "a", "r1")])
    assert await _all(store, "a") == (["a"], ["r1"])
    assert await store.delete_entity("a") is True
    assert await store.delete_relationship("r1") is False


async def test_delete_entity_removes_its_relationships(store: Graph) -> None:
    await store.add_entities(_people("a", "b", "c"))
    edges = [_knows("a", "b", "r1"), _knows("b", "c", "r2"), _knows("a", "c", "r3")]
    await store.add_relationships(edges)
    assert await store.delete_entity("b") is True
    assert await _all(store, "a") == (["a", "c"], ["r3"])
    assert await store.delete_relationship("r1") is False
    assert await _all(store, "b") == ([], [])
    await store.add_entities(_people("b"))
    assert await _all(store, "b") == (["b"], [])


async def test_delete_entity_of_an_unknown_entity_is_false(store: Graph) -> None:
    assert await store.delete_entity("nobody") is False
    await store.add_entities(_people("a"))
    assert await store.delete_entity("a") is True
    assert await store.delete_entity("a") is False


async def test_delete_relationship_removes_the_relationship_alone(store: Graph) -> None:
    await store.add_entities(_people("a", "b"))
    await store.add_relationships([_knows("a", "b", "r1"), _knows("a", "b", "r2")])
    assert await store.delete_relationship("r1") is True
    assert await _all(store, "a") == (["a", "b"], ["r2"])
    assert await store.delete_relationship("r2") is True
    assert await _all(store, "b") == (["b"], [])


async def test_delete_relationship_of_an_unknown_relationship_is_false(store: Graph) -> None:
    await store.add_entities(_people("a"))
    assert await store.delete_relationship("a") is False
    assert await _all(store, "a") == (["a"], [])


async def test_find_entities_finds_by_id_and_by_name_however_they_are_written(
    store: Graph,
) -> None:
    project, road = Entity("Project", {"name": "Project-X"}, "p1"), Entity("Road", {}, "Straße")
    await store.add_entities([project, road, Entity("Person", {"name": 7}, "n7")])
    assert await store.find_entities(["project x"]) == [project]
    assert await store.find_entities(["PROJECT-X", "P1"]) == [project]
    assert await store.find_entities(["STRASSE", "p1", "nobody"]) == [road, project]
    assert await store.find_entities(["Project", "7", ""]) == []


async def test_find_entities_follows_a_changed_name(store: Graph) -> None:
    await store.add_entities([Entity("Person", {"name": "Ann"}, "a"), *_people("ann")])
    renamed = Entity("Person", {"name": "Bea"}, "a")
    await store.add_entities([renamed])
    assert await store.find_entities(["ann"]) == _people("ann")
    assert await store.find_entities(["bea"]) == [renamed]
    await store.delete_entity("a")
    assert await store.find_entities(["bea", "a"]) == []


async def test_find_entities_of_an_unknown_name_is_empty(store: Graph) -> None:
    await store.add_entities(_people("ravi"))
    assert await store.find_entities(["rav", "ravi kumar", "nobody"]) == []


async def test_concurrent_adds_are_all_kept(store: Graph) -> None:
    await store.add_entities(_people("hub"))
    names = [f"e{at:02}" for at in range(40)]
    await asyncio.gather(*(store.add_entities(_people(name)) for name in names))
    await asyncio.gather(
        *(store.add_relationships([_knows("hub", name, f"r-{name}")]) for name in names)
    )
    assert await _all(store, "hub") == (["hub", *names], [f"r-{name}" for name in names])


async def test_a_relationship_never_outlives_a_concurrent_delete_of_its_entity(
    store: Graph,
) -> None:
    for turn in range(10):
        await store.add_entities(_people("a", "b"))
        calls = [
            store.add_relationships([_knows("a", "b", f"r{turn}")]),
            store.delete_entity("b"),
        ]
        if turn % 2:
            calls.reverse()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert all(isinstance(error, NotFoundError) for error in errors)
        await store.add_entities(_people("b"))
        assert await _all(store, "a") == (["a"], [])


async def test_properties_come_back_exactly_as_they_went_in(store: Graph) -> None:
    exact = {"z": 1, "a": [1e16, -0.0, 1, 1.0, True, None, "a\x00b"], "": {"y": {}, "b": []}}
    await store.add_entities([Entity("Person", exact, "a")])
    await store.add_relationships([Relationship("a", "a", "knows", exact, "r1")])
    found = await store.get_neighbors("a")
    assert repr(found.entities[0].properties) == repr(exact)
    assert repr(found.relationships[0].properties) == repr(exact)


async def test_labels_and_types_are_any_text_that_an_id_may_be(store: Graph) -> None:
    texts = ["X {a:1}) DETACH DELETE n //", "$$", "it's", "`q`", "记忆", "\U0001f980", "a.b", " "]
    for text in texts:
        await store.add_entities([Entity(text, {}, text)])
        edge = Relationship(text, text, text, {}, text)
        await store.add_relationships([edge])
        found = await store.get_neighbors(text, relationship_types=[text])
        assert found == SubGraph((Entity(text, {}, text),), (edge,))


async def test_an_id_a_label_or_a_type_that_is_not_an_id_is_refused(store: Graph) -> None:
    await store.add_entities(_people("a"))
    bad: Any
    for bad in ("", "a\nb", "x" * 513, "\ud800", None):
        calls = (
            store.add_entities([Entity("Person", {}, bad)]),
            store.add_entities([Entity(bad, {}, "x")]),
            store.add_relationships([_knows("a", "a", bad)]),
            store.add_relationships([_knows(bad, "a", "r")]),
            store.add_relationships([_knows("a", bad, "r")]),
            store.add_relationships([_knows("a", "a", "r", bad)]),
            store.get_neighbors(bad),
            store.get_neighbors("a", relationship_types=[bad]),
            store.delete_entity(bad),
            store.delete_relationship(bad),
        )
        for call in calls:
            with pytest.raises(InvalidInputError):
                await call
    with pytest.raises(InvalidInputError):
        await store.get_neighbors("a", relationship_types="knows")  # type: ignore[arg-type]
    assert await _all(store, "a") == (["a"], [])


async def test_one_tenant_never_sees_anothers_graph(harness: Harness) -> None:
    ours, theirs = harness.store(CONTRACT), harness.store(CONTRACT, tenant="other")
    await ours.add_entities(_people("a", "b"))
    await ours.add_relationships([_knows("a", "b", "r1")])
    assert await _all(theirs, "a") == ([], [])
    assert await theirs.find_entities(["a", "b"]) == []
    assert await theirs.delete_entity("a") is False
    assert await theirs.delete_relationship("r1") is False
    with pytest.raises(NotFoundError):
        await theirs.add_relationships([_knows("a", "b", "r1")])
    await theirs.add_entities([Entity("Robot", {}, "a")])
    assert await _all(theirs, "a") == (["a"], [])
    assert (await ours.get_neighbors("a")).entities == tuple(_people("a", "b"))


async def test_what_a_store_returns_is_the_callers_to_mutate(store: Graph) -> None:
    await store.add_entities([Entity("Person", {"tags": ["x"]}, "a")])
    await store.add_relationships([Relationship("a", "a", "knows", {"tags": ["x"]}, "r1")])
    found = await store.get_neighbors("a")
    [named] = await store.find_entities(["a"])
    for entity in (*found.entities, named):
        entity.properties["tags"].append("y")
    found.relationships[0].properties["tags"].append("y")
    again = await store.get_neighbors("a")
    assert again.entities[0].properties == {"tags": ["x"]}
    assert again.relationships[0].properties == {"tags": ["x"]}


async def test_what_a_caller_passed_in_may_be_changed_afterwards(store: Graph) -> None:
    of_entity, of_edge = {"name": "Ann", "tags": ["x"]}, {"tags": ["x"]}
    await store.add_entities([Entity("Person", of_entity, "a")])
    await store.add_relationships([Relationship("a", "a", "knows", of_edge, "r1")])
    of_entity.clear()
    of_edge["tags"].append("y")
    found = await store.get_neighbors("a")
    assert found.entities[0].properties == {"name": "Ann", "tags": ["x"]}
    assert found.relationships[0].properties == {"tags": ["x"]}


async def test_a_graph_is_still_there_after_a_reopen(harness: Harness) -> None:
    store = harness.store(CONTRACT)
    await store.add_entities(_people("a", "b"))
    await store.add_relationships([_knows("a", "b", "r1")])
    before = await store.get_neighbors("a")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.get_neighbors("a") == before
    assert await again.find_entities(["B"]) == _people("b")


async def test_a_store_is_cypher_capable_only_if_it_has_query_cypher(store: Graph) -> None:
    if isinstance(store, CypherCapable):
        expected = inspect.signature(CypherCapable.query_cypher).parameters
        assert list(inspect.signature(store.query_cypher).parameters) == list(expected)[1:]
    else:
        assert not hasattr(store, "query_cypher")
