"""Who is connected with whom: the knowledge graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from holdfast.values.errors import InvalidInputError
from holdfast.values.ids import new_id
from holdfast.values.text import name_key

Direction: TypeAlias = Literal["both", "out", "in"]
MAX_ENTITIES = 1000


@dataclass(frozen=True, slots=True)
class Entity:
    """A node: a label such as ``Person``, and free properties.

    The property ``name``, if it is text, is what it is found by, beside its id.

    >>> Entity("Person", {"name": "Ravi"}, "ravi").label
    'Person'
    """

    label: str
    properties: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Relationship:
    """An edge from one entity to another: a type such as ``works_on``, and free properties.

    >>> Relationship("ravi", "x", "works_on").type
    'works_on'
    """

    source_id: str
    target_id: str
    type: str
    properties: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class SubGraph:
    """What a walk found: entities by distance and then id, relationships by id.

    ``truncated`` says that the walk reached more entities than were asked for.

    >>> SubGraph((), ()).truncated
    False
    """

    entities: tuple[Entity, ...]
    relationships: tuple[Relationship, ...]
    truncated: bool = False


def entity_keys(entity_id: str, properties: dict[str, Any]) -> list[str]:
    """The folded names that an entity is found by: its id's and its name's.

    >>> entity_keys("p1", {"name": "Project-X"})
    ['p1', 'project x']
    """
    name = properties.get("name")
    keys = [name_key(entity_id), name_key(name) if isinstance(name, str) else ""]
    return [key for key in dict.fromkeys(keys) if key]


def check_direction(direction: object) -> Direction:
    """One of the directions of a walk.

    >>> check_direction("out")
    'out'
    """
    match direction:
        case "both" | "out" | "in":
            return direction
        case _:
            raise InvalidInputError("direction", f"must be both, out or in, not {direction!r}")


@runtime_checkable
class GraphStore(Protocol):
    """Entities and relationships, with the five methods that every agent needs.

    What our engines have besides is in ``Graph``.
    """

    @abstractmethod
    async def add_entities(self, entities: list[Entity]) -> list[str]:
        """Store entities, all or none; one whose id is there is replaced, its edges stay.

        ::

            await graph.add_entities([Entity("Person", {"name": "Ravi"}, "ravi")])
        """
        ...

    @abstractmethod
    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        """Store relationships, all or none; ``NotFoundError`` if an end is not there.

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
        max_entities: int = MAX_ENTITIES,
    ) -> SubGraph:
        """An entity, those within ``depth`` steps of it, and all relationships between them.

        ::

            found = await graph.get_neighbors("ravi", depth=2, relationship_types=["works_on"])
        """
        ...

    @abstractmethod
    async def delete_entity(self, entity_id: str) -> bool:
        """Remove an entity and its relationships; whether it was there.

        ::

            await graph.delete_entity("ravi")
        """
        ...

    @abstractmethod
    async def delete_relationship(self, relationship_id: str) -> bool:
        """Remove one relationship; whether it was there.

        ::

            await graph.delete_relationship("r1")
        """
        ...


@runtime_checkable
class Graph(GraphStore, Protocol):
    """Entities and the relationships between them, and walks from one to its neighbours.

    Labels and types follow the rules of ids. An entity and a relationship may have the same id.

    Promises:

    - entities and relationships come back as they were added
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
    - max_entities caps the result and truncated says so
    - a max_entities of zero is an empty result
    - an unknown direction is refused
    - delete_entity removes its relationships
    - delete_entity of an unknown entity is false
    - delete_relationship removes the relationship alone
    - delete_relationship of an unknown relationship is false
    - find_entities finds by id and by name, however they are written
    - find_entities follows a changed name
    - find_entities of an unknown name is empty
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
        """The entities whose id or name is one of these, case and punctuation aside, by id.

        ::

            [ravi] = await graph.find_entities(["RAVI"])
        """
        ...


@runtime_checkable
class CypherCapable(Protocol):
    """A graph store that speaks Cypher; ask with ``isinstance(store, CypherCapable)``."""

    @abstractmethod
    async def query_cypher(
        self,
        query: str,
        params: dict[str, Any] | None = None,
        *,
        columns: Sequence[str] = ("result",),
        write: bool = False,
    ) -> list[dict[str, Any]]:
        """The rows of a query, each with the named columns; read-only unless ``write``.

        Values belong in ``params``, never in the text of the query.

        ::

            rows = await graph.query_cypher("MATCH (n) RETURN n.name", columns=["name"])
        """
        ...
