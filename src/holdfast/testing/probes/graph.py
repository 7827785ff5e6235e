"""Where hostile input can enter a ``Graph``."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.graph import Graph
from holdfast.testing.hostile import KEPT, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.graph import Entity, Relationship

CONTRACT = "graph"


async def _two(store: Graph) -> None:
    await store.add_entities([Entity("Person", {}, "a"), Entity("Person", {}, "b")])


async def _edge(store: Graph, **parts: Any) -> Relationship:
    whole = {"source_id": "a", "target_id": "b", "type": "knows", "properties": {}, "id": "r"}
    await store.add_relationships([Relationship(**whole | parts)])
    return (await store.get_neighbors("a")).relationships[0]


async def _entity_id(store: Graph, value: Any) -> Any:
    [stored] = await store.add_entities([Entity("Person", {}, value)])
    return (await store.get_neighbors(stored)).entities[0].id


async def _entity_label(store: Graph, value: Any) -> Any:
    await store.add_entities([Entity(value, {}, "a")])
    return (await store.get_neighbors("a")).entities[0].label


async def _entity_subject(store: Graph, value: Any) -> Any:
    await store.add_entities([Entity("Person", {}, "a", value)])
    return (await store.get_neighbors("a")).entities[0].subject


async def _relationship_subject(store: Graph, value: Any) -> Any:
    return (await _edge(store, subject=value)).subject


def _empty_is_nobody(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value == "" else None


async def _entity_properties(store: Graph, value: Any) -> Any:
    await store.add_entities([Entity("Person", value, "a")])
    return (await store.get_neighbors("a")).entities[0].properties


async def _entity_name(store: Graph, value: Any) -> Any:
    # Only text is a name; what else JSON holds is any other property.
    named: Any = {"name": value} if isinstance(value, str) else [value]
    await store.add_entities([Entity("Person", named, "a")])
    return (await store.get_neighbors("a")).entities[0].properties["name"]


async def _relationship_id(store: Graph, value: Any) -> Any:
    found = await _edge(store, id=value)
    assert await store.delete_relationship(value) is True
    return found.id


async def _relationship_type(store: Graph, value: Any) -> Any:
    return (await _edge(store, type=value)).type


async def _relationship_properties(store: Graph, value: Any) -> Any:
    return (await _edge(store, properties=value)).properties


async def _relationship_source(store: Graph, value: Any) -> Any:
    if isinstance(value, str):
        await _entity_id(store, value)
    await store.add_relationships([Relationship(value, "b", "knows", {}, "r")])
    return (await store.get_neighbors("b")).relationships[0].source_id


async def _relationship_target(store: Graph, value: Any) -> Any:
    if isinstance(value, str):
        await _entity_id(store, value)
    await store.add_relationships([Relationship("a", value, "knows", {}, "r")])
    return (await store.get_neighbors("a")).relationships[0].target_id


async def _walk_id(store: Graph, value: Any) -> Any:
    assert (await store.get_neighbors(value, depth=2)).entities == ()
    return NO_ECHO


async def _walk_types(store: Graph, value: Any) -> Any:
    found = await store.get_neighbors("a", relationship_types=[value])
    assert [one.id for one in found.entities] == ["a"]
    return NO_ECHO


async def _delete_entity(store: Graph, value: Any) -> Any:
    assert await store.delete_entity(value) is False
    return NO_ECHO


async def _delete_relationship(store: Graph, value: Any) -> Any:
    assert await store.delete_relationship(value) is False
    return NO_ECHO


async def _find(store: Graph, value: Any) -> Any:
    await store.find_entities([value])
    return NO_ECHO


async def _after(store: Graph, value: Any) -> Any:
    assert await store.list_entities(after=value) == []
    return NO_ECHO


async def _edges_of(store: Graph, value: Any) -> Any:
    assert await store.list_relationships(value) == []
    return NO_ECHO


async def _edge_types(store: Graph, value: Any) -> Any:
    assert await store.list_relationships("a", relationship_types=[value]) == []
    return NO_ECHO


async def _edges_after(store: Graph, value: Any) -> Any:
    assert await store.list_relationships("a", after=value) == []
    return NO_ECHO


async def _degrees(store: Graph, value: Any) -> Any:
    assert await store.degrees([value]) == [0]
    return NO_ECHO


def _keep_none(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else None


PROBES = (
    Probe("add_entities.id", "id", _entity_id),
    Probe("add_entities.label", "id", _entity_label),
    Probe("add_entities.subject", "id", _entity_subject, judge=_empty_is_nobody),
    Probe(
        "add_relationships.subject",
        "id",
        _relationship_subject,
        prepare=_two,
        judge=_empty_is_nobody,
    ),
    Probe("add_entities.properties", "object", _entity_properties),
    Probe("add_entities.properties.name", "text", _entity_name),
    Probe("add_relationships.id", "id", _relationship_id, prepare=_two),
    Probe("add_relationships.type", "id", _relationship_type, prepare=_two),
    Probe("add_relationships.properties", "object", _relationship_properties, prepare=_two),
    Probe("add_relationships.source_id", "id", _relationship_source, prepare=_two),
    Probe("add_relationships.target_id", "id", _relationship_target, prepare=_two),
    Probe("get_neighbors.entity_id", "id", _walk_id, prepare=_two),
    Probe("get_neighbors.relationship_types", "id", _walk_types, prepare=_two),
    Probe("delete_entity.entity_id", "id", _delete_entity),
    Probe("delete_relationship.relationship_id", "id", _delete_relationship),
    Probe("find_entities.names", "text", _find),
    Probe("list_entities.after", "id", _after, judge=_keep_none),
    Probe("list_relationships.entity_id", "id", _edges_of),
    Probe("list_relationships.relationship_types", "id", _edge_types, prepare=_two),
    Probe("list_relationships.after", "id", _edges_after, prepare=_two, judge=_keep_none),
    Probe("degrees.entity_ids", "id", _degrees),
)
