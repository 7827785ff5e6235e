"""The knowledge graph, as an engine stores it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from holdfast.spi.graph_draft import EdgePage, EntityDraft, RelationshipDraft, Walk
from holdfast.spi.id_page import IdPage
from holdfast.values.graph import Entity, Relationship, SubGraph


class GraphStorage(Protocol):
    """The graph of one tenant. The caller checks all arguments; ids within a batch differ."""

    @abstractmethod
    async def put_entities(self, drafts: Sequence[EntityDraft]) -> None:
        """Store entities, all or none. An existing one is replaced, and keeps its relationships."""

    @abstractmethod
    async def put_relationships(self, drafts: Sequence[RelationshipDraft]) -> None:
        """Store relationships, all or none. An existing one is replaced, with its two ends.

        Raises ``NotFoundError("entity", id)`` if its source or target does not exist.
        """

    @abstractmethod
    async def walk(self, walk: Walk) -> SubGraph:
        """Return the part of the graph that a traversal reaches; empty without its start."""

    @abstractmethod
    async def delete_entity(self, entity_id: str) -> bool:
        """Delete an entity and its relationships. Returns whether it was there."""

    @abstractmethod
    async def delete_relationship(self, relationship_id: str) -> bool:
        """Delete a relationship. Returns whether it was there."""

    @abstractmethod
    async def find(self, names: Sequence[str]) -> list[Entity]:
        """Return the entities that have one of these folded names (see ``folded_names``), by id."""

    @abstractmethod
    async def page(self, page: IdPage) -> list[Entity]:
        """Return a page of the entities, by id."""

    @abstractmethod
    async def edges(self, page: EdgePage) -> list[Relationship]:
        """Return a page of the relationships of an entity, by id; empty without the entity."""

    @abstractmethod
    async def degrees(self, ids: Sequence[str]) -> list[int]:
        """Return how many relationships each entity has, in order; a self-loop counts once."""


@runtime_checkable
class CypherStorage(GraphStorage, Protocol):
    """A ``GraphStorage`` that runs Cypher."""

    @abstractmethod
    async def query(
        self, text: str, params: dict[str, Any], columns: int, *, write: bool
    ) -> Sequence[Sequence[Any]]:
        """Run a query and return its rows, each with as many values as ``columns``.

        Raises ``InvalidInputError`` for ``query``, ``params`` or ``columns`` if the engine cannot
        run it, if it writes without ``write``, or if it could reach more than the tenant's graph.
        Nothing is written then.
        """
