"""The knowledge graph in memory: entities, relationships, and the relationships of each entity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.graph import GraphStorage
from holdfast.spi.graph_draft import EdgePage, EntityDraft, RelationshipDraft, Walk
from holdfast.spi.id_page import IdPage
from holdfast.values.codec import decode_json
from holdfast.values.errors import NotFoundError
from holdfast.values.graph import Direction, Entity, Relationship, SubGraph


@dataclass(slots=True)
class _Node:
    """An entity, with the ids of its outgoing and incoming relationships."""

    label: str
    properties: str
    keys: list[str]
    subject: str = ""
    leaving: set[str] = field(default_factory=set)
    reaching: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Edge:
    source: str
    target: str
    type: str
    properties: str
    subject: str = ""


@dataclass(slots=True)
class _Data:
    nodes: dict[str, _Node] = field(default_factory=dict)
    edges: dict[str, _Edge] = field(default_factory=dict)
    by_key: dict[str, set[str]] = field(default_factory=dict)


class InMemoryGraph(GraphStorage):
    """The knowledge graph of one tenant, in memory.

    >>> graph = InMemoryGraph(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._data = engine.table(tenant, _Data)

    async def put_entities(self, drafts: Sequence[EntityDraft]) -> None:
        """Store entities."""
        for draft in drafts:
            key = draft.id
            node = _Node(draft.label, draft.properties, draft.names, draft.subject)
            old = self._data.nodes.get(key)
            if old is not None:
                node.leaving, node.reaching = old.leaving, old.reaching
                self._forget_names(key, old)
            self._data.nodes[key] = node
            for name in node.keys:
                self._data.by_key.setdefault(name, set()).add(key)

    async def put_relationships(self, drafts: Sequence[RelationshipDraft]) -> None:
        """Store relationships."""
        for draft in drafts:
            for end in (draft.source, draft.target):
                if end not in self._data.nodes:
                    raise NotFoundError("entity", end)
        for draft in drafts:
            key = draft.id
            what = (draft.type, draft.properties, draft.subject)
            edge = _Edge(draft.source, draft.target, *what)
            self._cut(key)
            self._data.edges[key] = edge
            self._data.nodes[edge.source].leaving.add(key)
            self._data.nodes[edge.target].reaching.add(key)

    async def walk(self, walk: Walk) -> SubGraph:
        """Return the entities and relationships that a traversal reaches from an entity."""
        types = None if walk.types is None else set(walk.types)
        if walk.start not in self._data.nodes:
            return SubGraph((), ())
        reached, truncated = self._walk(walk, types)
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
        """Delete an entity and its relationships. Returns whether it existed."""
        node = self._data.nodes.get(entity_id)
        if node is None:
            return False
        for edge in node.leaving | node.reaching:
            self._cut(edge)
        self._forget_names(entity_id, node)
        del self._data.nodes[entity_id]
        return True

    async def delete_relationship(self, relationship_id: str) -> bool:
        """Delete a relationship. Returns whether it existed."""
        return self._cut(relationship_id)

    async def find(self, names: Sequence[str]) -> list[Entity]:
        """Return the entities that have one of these names."""
        found = {key for name in names for key in self._data.by_key.get(name, ())}
        return [self._entity(key) for key in sorted(found)]

    def _walk(self, walk: Walk, types: set[str] | None) -> tuple[dict[str, None], bool]:
        """Return the reachable ids, nearest first, and whether the limit cut some off."""
        reached: dict[str, None] = {}
        frontier = [walk.start]
        for step in range(walk.depth + 1):
            for key in frontier:
                if len(reached) == walk.max_entities:
                    return reached, True
                reached[key] = None
            if step == walk.depth:
                break
            beyond = {
                other for key in frontier for other in self._beside(key, types, walk.direction)
            }
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

    async def page(self, page: IdPage) -> list[Entity]:
        """Return a page of the entities, by id."""
        return list(map(self._entity, page.of(self._data.nodes)))

    async def edges(self, page: EdgePage) -> list[Relationship]:
        """Return a page of the relationships of an entity, by id."""
        node = self._data.nodes.get(page.entity)
        if node is None:
            return []
        leaving = node.leaving if page.direction != "in" else set()
        reaching = node.reaching if page.direction != "out" else set()
        types = None if page.types is None else set(page.types)
        found = sorted(
            key for key in leaving | reaching if key > page.after and self._fits(key, types)
        )
        return list(map(self._relationship, found[: page.limit]))

    async def degrees(self, ids: Sequence[str]) -> list[int]:
        """Return how many relationships each entity has."""
        nodes = (self._data.nodes.get(one) for one in ids)
        return [0 if node is None else len(node.leaving | node.reaching) for node in nodes]

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
        return Entity(node.label, decode_json(node.properties), key, node.subject)

    def _relationship(self, key: str) -> Relationship:
        edge = self._data.edges[key]
        what = (edge.type, decode_json(edge.properties))
        return Relationship(edge.source, edge.target, *what, key, edge.subject)
