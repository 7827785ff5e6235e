"""The knowledge graph, as agents use it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from holdfast.contracts.front import Front
from holdfast.spi.graph import GraphStorage
from holdfast.spi.graph_draft import (
    EdgePage,
    EntityDraft,
    RelationshipDraft,
    Walk,
    draft_entities,
    draft_relationships,
    folded_names,
)
from holdfast.spi.id_page import IdPage
from holdfast.values.checks import (
    check_count,
    check_ids,
)
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError
from holdfast.values.graph import Direction, Entity, Relationship, SubGraph
from holdfast.values.owners import owned_id

MAX_ENTITIES = 1000


@runtime_checkable
class GraphStore(Protocol):
    """Entities and relationships, with the five methods that every agent needs.

    ``Graph`` has the further methods of Holdfast's engines.
    """

    @abstractmethod
    async def add_entities(self, entities: list[Entity]) -> list[str]:
        """Store entities, all or none, and return their ids.

        An entity with an existing id is replaced and keeps its relationships. ::

            await graph.add_entities([Entity("Person", {"name": "Ravi"}, "ravi")])
        """
        ...

    @abstractmethod
    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        """Store relationships, all or none. Raises ``NotFoundError`` if an entity is missing.

        ::

            await graph.add_relationships([Relationship("ravi", "x", "works_on")])
        """
        ...

    @abstractmethod
    async def get_neighbors(
        self,
        entity_id: str,
        *,
        depth: int = 1,
        relationship_types: list[str] | None = None,
        direction: Direction = "both",
        limit: int = MAX_ENTITIES,
    ) -> SubGraph:
        """Return an entity, all within ``depth`` steps, and the relationships between them.

        ::

            found = await graph.get_neighbors("ravi", depth=2, relationship_types=["works_on"])
        """
        ...

    @abstractmethod
    async def delete_entity(self, entity_id: str) -> bool:
        """Delete an entity and its relationships. Returns whether it was there.

        ::

            await graph.delete_entity("ravi")
        """
        ...

    @abstractmethod
    async def delete_relationship(self, relationship_id: str) -> bool:
        """Delete a relationship. Returns whether it was there.

        ::

            await graph.delete_relationship("r1")
        """
        ...


@runtime_checkable
class Graph(GraphStore, Protocol):
    """Entities and the relationships between them, with traversal from an entity to others.

    Labels and types follow the rules of ids. An entity and a relationship may have the same id.

    Promises:

    - entities and relationships come back as they were added
    - an entity and a relationship have the subject of their last add
    - a subject of an entity or a relationship that is not an id is refused
    - add_entities returns the ids in input order
    - add_relationships returns the ids in input order
    - an entity or a relationship without an id gets one
    - add_entities with an existing id replaces it and keeps its relationships
    - add_relationships with an existing id replaces it, ends included
    - the same id twice in a batch is refused and nothing is written
    - an empty batch does nothing
    - a batch with one bad entity or relationship writes nothing
    - a relationship to a missing entity is refused, the batch with it
    - parallel edges are legal
    - a self-loop is legal
    - a walk is undirected by default
    - a walk out follows relationships from source to target
    - a walk in follows relationships from target to source
    - the start entity is in the result
    - an unknown start gives an empty result
    - a depth of zero is the entity alone
    - a walk goes as many steps as its depth
    - a negative depth is refused
    - a walk over a cycle ends
    - relationship_types narrows the walk and the result
    - an empty list of relationship_types matches none
    - all relationships between the returned entities are returned
    - entities are ordered by distance and then by id, relationships by id
    - a limit caps the result and truncated says so
    - a limit of zero is an empty result
    - an unknown direction is refused
    - delete_entity removes its relationships
    - delete_entity of an unknown entity is false
    - delete_relationship removes the relationship alone
    - delete_relationship of an unknown relationship is false
    - find_entities finds by id and by name, however they are written
    - find_entities follows a changed name
    - find_entities of an unknown name is empty
    - entities are listed by code points of their ids
    - a limit and after select a page of the entities
    - entities are those of the owner who asks, or those that nobody owns
    - relationships of an entity are listed by code points of their ids
    - a limit and after select a page of the relationships
    - relationships of an entity are listed by type and direction
    - relationships of an unknown entity are none
    - degrees counts the relationships of each entity, and zero for an unknown one
    - concurrent adds are all kept
    - a relationship never outlives a concurrent delete of its entity
    - properties come back exactly as they went in
    - labels and types are any text that an id may be
    - an id, a label or a type that is not an id is refused
    - one tenant never sees another's graph
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - a graph is still there after a reopen
    - a store is cypher capable only if it has query_cypher
    """

    @abstractmethod
    async def find_entities(self, names: list[str]) -> list[Entity]:
        """Return entities by id or name, ignoring case and punctuation, in order of their ids.

        ::

            [ravi] = await graph.find_entities(["RAVI"])
        """
        ...

    @abstractmethod
    async def list_entities(self, *, limit: int = 100, after: str | None = None) -> list[Entity]:
        """Return the entities in order of their ids.

        ``after`` is the id of the last one of the previous page. ::

            page = await graph.list_entities(limit=20)
            more = await graph.list_entities(limit=20, after=page[-1].id)
        """
        ...

    @abstractmethod
    async def list_relationships(
        self,
        entity_id: str,
        *,
        relationship_types: list[str] | None = None,
        direction: Direction = "both",
        limit: int = 100,
        after: str | None = None,
    ) -> list[Relationship]:
        """Return the relationships of an entity in order of their ids.

        ``after`` is the id of the last one of the previous page. ::

            page = await graph.list_relationships("ravi", direction="out", limit=20)
            more = await graph.list_relationships("ravi", direction="out", after=page[-1].id)
        """
        ...

    @abstractmethod
    async def degrees(self, entity_ids: list[str]) -> list[int]:
        """Return how many relationships each entity has; one to itself counts once.

        ::

            [of_ravi] = await graph.degrees(["ravi"])
        """
        ...


class KnowledgeGraph(Front, Graph):
    """Implements ``Graph``: checks the arguments, then calls the engine's storage.

    ::

        graph = KnowledgeGraph(PostgresGraph(engine, tenant="acme"))
    """

    def __init__(self, storage: GraphStorage) -> None:
        self._storage = storage

    async def add_entities(self, entities: list[Entity]) -> list[str]:
        """Store entities, all or none, and return their ids."""
        drafts = draft_entities(entities)
        for at, draft in enumerate(drafts):
            self._limits.check_value(f"entities[{at}].properties", draft.properties)
        if drafts:
            await self._storage.put_entities(self._stored_entities(drafts))
        return [draft.id for draft in drafts]

    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        """Store relationships, all or none. Raises ``NotFoundError`` if an entity is missing."""
        drafts = draft_relationships(relationships)
        for at, draft in enumerate(drafts):
            self._limits.check_value(f"relationships[{at}].properties", draft.properties)
        if drafts:
            await self._storage.put_relationships(self._stored_relationships(drafts))
        return [draft.id for draft in drafts]

    @renamed(max_entities="limit")
    async def get_neighbors(
        self,
        entity_id: str,
        *,
        depth: int = 1,
        relationship_types: list[str] | None = None,
        direction: Direction = "both",
        limit: int = MAX_ENTITIES,
    ) -> SubGraph:
        """Return an entity, all within ``depth`` steps, and the relationships between them."""
        types = relationship_types
        walk = Walk(
            self._scope.known("entity_id", entity_id),
            check_count("depth", depth),
            None if types is None else check_ids("relationship_types", types),
            check_direction(direction),
            check_count("limit", limit),
        )
        self._limits.check_walk(walk.depth, walk.max_entities)
        found = await self._storage.walk(walk)
        if self._scope.knower:
            found = replace(
                found,
                entities=tuple(self._own_entities(found.entities)),
                relationships=tuple(map(self._own_relationship, found.relationships)),
            )
        return found

    async def delete_entity(self, entity_id: str) -> bool:
        """Delete an entity and its relationships. Returns whether it was there."""
        return await self._storage.delete_entity(self._scope.known("entity_id", entity_id))

    async def delete_relationship(self, relationship_id: str) -> bool:
        """Delete a relationship. Returns whether it was there."""
        key = self._scope.known("relationship_id", relationship_id)
        return await self._storage.delete_relationship(key)

    async def find_entities(self, names: list[str]) -> list[Entity]:
        """Return entities by id or name, ignoring case and punctuation, in order of their ids."""
        wanted = [owned_id(self._scope.knower, name) for name in folded_names(names)]
        return self._own_entities(await self._storage.find(wanted)) if wanted else []

    async def list_entities(self, *, limit: int = 100, after: str | None = None) -> list[Entity]:
        """Return the entities in order of their ids."""
        last = "" if after is None else self._scope.known("after", after)
        page = IdPage(*self._scope.names(), last, check_count("limit", limit))
        return self._own_entities(await self._storage.page(page)) if page.limit else []

    async def list_relationships(
        self,
        entity_id: str,
        *,
        relationship_types: list[str] | None = None,
        direction: Direction = "both",
        limit: int = 100,
        after: str | None = None,
    ) -> list[Relationship]:
        """Return the relationships of an entity in order of their ids."""
        types = relationship_types
        page = EdgePage(
            self._scope.known("entity_id", entity_id),
            None if types is None else check_ids("relationship_types", types),
            check_direction(direction),
            "" if after is None else self._scope.known("after", after),
            check_count("limit", limit),
        )
        found = await self._storage.edges(page) if page.limit else []
        return [*map(self._own_relationship, found)] if self._scope.knower else found

    async def degrees(self, entity_ids: list[str]) -> list[int]:
        """Return how many relationships each entity has; one to itself counts once."""
        ids = check_ids("entity_ids", entity_ids)
        known = [self._scope.known(f"entity_ids[{at}]", one) for at, one in enumerate(ids)]
        return await self._storage.degrees(known) if known else []

    def _stored_entities(self, drafts: list[EntityDraft]) -> list[EntityDraft]:
        knower = self._scope.knower
        if not knower:
            return drafts
        return [
            replace(
                draft,
                id=owned_id(knower, draft.id),
                names=[owned_id(knower, name) for name in draft.names],
            )
            for draft in drafts
        ]

    def _stored_relationships(self, drafts: list[RelationshipDraft]) -> list[RelationshipDraft]:
        knower = self._scope.knower
        if not knower:
            return drafts
        return [
            replace(
                draft,
                id=owned_id(knower, draft.id),
                source=owned_id(knower, draft.source),
                target=owned_id(knower, draft.target),
            )
            for draft in drafts
        ]

    def _own_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        if not self._scope.knower:
            return [*entities]
        return [replace(one, id=self._scope.own(one.id)) for one in entities]

    def _own_relationship(self, one: Relationship) -> Relationship:
        own = self._scope.own
        return replace(
            one, id=own(one.id), source_id=own(one.source_id), target_id=own(one.target_id)
        )


def check_direction(direction: object) -> Direction:
    """Check the direction of a graph traversal.

    >>> check_direction("out")
    'out'
    """
    match direction:
        case "both" | "out" | "in":
            return direction
        case _:
            raise InvalidInputError("direction", f"must be both, out or in, not {direction!r}")
