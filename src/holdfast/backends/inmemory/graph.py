"""The knowledge graph in the process: entities, relationships, and who touches whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_count, check_id, check_ids, check_list, check_text
from holdfast.kernel.core.codec import decode_json, encode_object
from holdfast.kernel.core.errors import InvalidInputError, NotFoundError
from holdfast.kernel.core.text import name_key
from holdfast.kernel.storage.graph import (
    MAX_ENTITIES,
    Direction,
    Entity,
    GraphStore,
    Relationship,
    SubGraph,
    check_direction,
    entity_keys,
)


@dataclass(slots=True)
class _Node:
    """An entity, with the ids of the relationships that leave it and that reach it."""

    label: str
    properties: str
    keys: list[str]
    leaving: set[str] = field(default_factory=set)
    reaching: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Edge:
    source: str
    target: str
    type: str
    properties: str


@dataclass(slots=True)
class _Data:
    nodes: dict[str, _Node] = field(default_factory=dict)
    edges: dict[str, _Edge] = field(default_factory=dict)
    by_key: dict[str, set[str]] = field(default_factory=dict)


class InMemoryGraph(GraphStore):
    """``GraphStore`` of the in-memory engine.

    >>> graph = InMemoryGraph(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._data = engine.table(tenant, _Data)

    async def add_entities(self, entities: list[Entity]) -> list[str]:
        """Store entities, all or none; one whose id is there is replaced, its edges stay."""
        nodes: dict[str, _Node] = {}
        for at, entity in enumerate(check_list("entities", entities)):
            field = f"entities[{at}]"
            if not isinstance(entity, Entity):
                raise InvalidInputError(field, f"must be an Entity, not {type(entity).__name__}")
            key = _new_key(entity.id, f"{field}.id", nodes)
            label = check_id(f"{field}.label", entity.label)
            properties = encode_object(entity.properties, field=f"{field}.properties")
            nodes[key] = _Node(label, properties, entity_keys(key, entity.properties))
        for key, node in nodes.items():
            old = self._data.nodes.get(key)
            if old is not None:
                node.leaving, node.reaching = old.leaving, old.reaching
                self._forget_names(key, old)
            self._data.nodes[key] = node
            for name in node.keys:
                self._data.by_key.setdefault(name, set()).add(key)
        return list(nodes)

    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        """Store relationships, all or none; ``NotFoundError`` if an end is not there."""
        edges: dict[str, _Edge] = {}
        for at, one in enumerate(check_list("relationships", relationships)):
            field = f"relationships[{at}]"
            if not isinstance(one, Relationship):
                raise InvalidInputError(field, f"must be a Relationship, not {type(one).__name__}")
            edges[_new_key(one.id, f"{field}.id", edges)] = _Edge(
                check_id(f"{field}.source_id", one.source_id),
                check_id(f"{field}.target_id", one.target_id),
                check_id(f"{field}.type", one.type),
                encode_object(one.properties, field=f"{field}.properties"),
            )
        for edge in edges.values():
            for end in (edge.source, edge.target):
                if end not in self._data.nodes:
                    raise NotFoundError("entity", end)
        for key, edge in edges.items():
            self._cut(key)
            self._data.edges[key] = edge
            self._data.nodes[edge.source].leaving.add(key)
            self._data.nodes[edge.target].reaching.add(key)
        return list(edges)

    async def get_neighbors(
        self,
        entity_id: str,
        *,
        depth: int = 1,
        relationship_types: list[str] | None = None,
        direction: Direction = "both",
        max_entities: int = MAX_ENTITIES,
    ) -> SubGraph:
        """An entity, those within ``depth`` steps of it, and all relationships between them."""
        start = check_id("entity_id", entity_id)
        depth = check_count("depth", depth)
        types = (
            None
            if relationship_types is None
            else set(check_ids("relationship_types", relationship_types))
        )
        direction = check_direction(direction)
        limit = check_count("max_entities", max_entities)
        if start not in self._data.nodes:
            return SubGraph((), ())
        reached, truncated = self._walk(start, depth, types, direction, limit)
        between = sorted(
            key
            for name in reached
            for key in self._data.nodes[name].leaving
            if self._data.edges[key].target in reached and self._fits(key, types)
        )
        return SubGraph(
            tuple(map(self._entity, reached)), tuple(map(self._relationship, between)), truncated
        )

    async def delete_entity(self, entity_id: str) -> bool:
        """Remove an entity and its relationships; whether it was there."""
        key = check_id("entity_id", entity_id)
        node = self._data.nodes.get(key)
        if node is None:
            return False
        for edge in node.leaving | node.reaching:
            self._cut(edge)
        self._forget_names(key, node)
        del self._data.nodes[key]
        return True

    async def delete_relationship(self, relationship_id: str) -> bool:
        """Remove one relationship; whether it was there."""
        return self._cut(check_id("relationship_id", relationship_id))

    async def find_entities(self, names: list[str]) -> list[Entity]:
        """The entities whose id or name is one of these, case and punctuation aside, by id."""
        wanted = [
            name_key(check_text(f"names[{at}]", name))
            for at, name in enumerate(check_list("names", names))
        ]
        found = {key for name in wanted for key in self._data.by_key.get(name, ())}
        return [self._entity(key) for key in sorted(found)]

    def _walk(
        self, start: str, depth: int, types: set[str] | None, direction: Direction, limit: int
    ) -> tuple[dict[str, None], bool]:
        """The ids within reach, nearest first, and whether there were more than ``limit``."""
        reached: dict[str, None] = {}
        frontier = [start]
        for step in range(depth + 1):
            for key in frontier:
                if len(reached) == limit:
                    return reached, True
                reached[key] = None
            if step == depth:
                break
            beyond = {other for key in frontier for other in self._beside(key, types, direction)}
            frontier = sorted(beyond - reached.keys())
            if not frontier:
                break
        return reached, False

    def _beside(self, key: str, types: set[str] | None, direction: Direction) -> Iterable[str]:
        node, edges = self._data.nodes[key], self._data.edges
        if direction != "in":
            yield from (edges[edge].target for edge in node.leaving if self._fits(edge, types))
        if direction != "out":
            yield from (edges[edge].source for edge in node.reaching if self._fits(edge, types))

    def _fits(self, edge: str, types: set[str] | None) -> bool:
        return types is None or self._data.edges[edge].type in types

    def _cut(self, key: str) -> bool:
        edge = self._data.edges.pop(key, None)
        if edge is None:
            return False
        self._data.nodes[edge.source].leaving.discard(key)
        self._data.nodes[edge.target].reaching.discard(key)
        return True

    def _forget_names(self, key: str, node: _Node) -> None:
        for name in node.keys:
            named = self._data.by_key[name]
            named.discard(key)
            if not named:
                del self._data.by_key[name]

    def _entity(self, key: str) -> Entity:
        node = self._data.nodes[key]
        return Entity(node.label, decode_json(node.properties), key)

    def _relationship(self, key: str) -> Relationship:
        edge = self._data.edges[key]
        return Relationship(edge.source, edge.target, edge.type, decode_json(edge.properties), key)


def _new_key(key: object, field: str, batch: Iterable[str]) -> str:
    checked = check_id(field, key)
    if checked in batch:
        raise InvalidInputError(
            field, f"{checked!r} stands twice in one batch: which one is meant?"
        )
    return checked
