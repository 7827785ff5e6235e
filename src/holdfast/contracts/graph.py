"""The knowledge graph, as agents use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.contracts.front import Front
from holdfast.kernel.storage.graph import (
    MAX_ENTITIES,
    CypherCapable,
    Direction,
    Entity,
    Graph,
    Relationship,
    SubGraph,
    check_direction,
)
from holdfast.kernel.storage.graph_draft import (
    EntityDraft,
    RelationshipDraft,
    Walk,
    draft_entities,
    draft_relationships,
    folded_names,
)
from holdfast.spi.graph import CypherStorage, GraphStorage
from holdfast.values.checks import (
    check_count,
    check_ids,
    check_list,
    check_text,
)
from holdfast.values.codec import encode_object
from holdfast.values.errors import InvalidInputError, NotSupportedError
from holdfast.values.owners import owned_id


class KnowledgeGraph(Front, Graph):
    """``Graph`` on any engine.

    ::

        graph = KnowledgeGraph(PostgresGraph(engine, tenant="acme"))
    """

    def __init__(self, storage: GraphStorage) -> None:
        self._storage = storage

    async def add_entities(self, entities: list[Entity]) -> list[str]:
        """Store entities, all or none; one whose id is there is replaced, its edges stay."""
        drafts = draft_entities(entities)
        for at, draft in enumerate(drafts):
            self._limits.check_value(f"entities[{at}].properties", draft.properties)
        if drafts:
            await self._storage.put_entities(self._stored_entities(drafts))
        return [draft.id for draft in drafts]

    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        """Store relationships, all or none; ``NotFoundError`` if an end is not there."""
        drafts = draft_relationships(relationships)
        for at, draft in enumerate(drafts):
            self._limits.check_value(f"relationships[{at}].properties", draft.properties)
        if drafts:
            await self._storage.put_relationships(self._stored_relationships(drafts))
        return [draft.id for draft in drafts]

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
        types = relationship_types
        walk = Walk(
            self._scope.known("entity_id", entity_id),
            check_count("depth", depth),
            None if types is None else check_ids("relationship_types", types),
            check_direction(direction),
            check_count("max_entities", max_entities),
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
        """Remove an entity and its relationships; whether it was there."""
        return await self._storage.delete_entity(self._scope.known("entity_id", entity_id))

    async def delete_relationship(self, relationship_id: str) -> bool:
        """Remove one relationship; whether it was there."""
        key = self._scope.known("relationship_id", relationship_id)
        return await self._storage.delete_relationship(key)

    async def find_entities(self, names: list[str]) -> list[Entity]:
        """The entities whose id or name is one of these, case and punctuation aside, by id."""
        wanted = [owned_id(self._scope.knower, name) for name in folded_names(names)]
        return self._own_entities(await self._storage.find(wanted)) if wanted else []

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


class CypherGraph(KnowledgeGraph, CypherCapable):
    """``Graph`` and ``CypherCapable`` on an engine that runs Cypher.

    ::

        graph = CypherGraph(AgeGraph(await Age.open("postgresql://app@db/main"), tenant="acme"))
    """

    _storage: CypherStorage

    def __init__(self, storage: CypherStorage) -> None:
        super().__init__(storage)

    async def query_cypher(
        self,
        query: str,
        params: dict[str, Any] | None = None,
        *,
        columns: Sequence[str] = ("result",),
        write: bool = False,
    ) -> list[dict[str, Any]]:
        """The rows of a query, each with the named columns; read-only unless ``write``.

        Entities are vertices with the label ``Entity``, relationships are edges with the label
        ``Relationship``; their properties are the user's, with ``id`` and ``label``, ``id`` and
        ``type`` beside them. Values belong in ``params``. More than ``max_rows`` rows are refused.

        ::

            await graph.query_cypher(
                "MATCH (a:Entity)-[r:Relationship]->(b) WHERE a.id = $id RETURN r.type, b.name",
                {"id": "ravi"},
                columns=["type", "name"],
            )
        """
        if self._scope.knower:
            raise NotSupportedError(
                "graph",
                "query_cypher for one owner",
                why="a query reaches the whole graph of the tenant: use the state itself",
            )
        text = _query(query)
        given = {} if params is None else params
        encode_object(given, field="params")
        names = _columns(columns)
        rows = await self._storage.query(text, given, len(names), write=write)
        return [dict(zip(names, row, strict=True)) for row in rows]


def _query(query: object) -> str:
    text = check_text("query", query)
    if not text.strip():
        raise InvalidInputError("query", "is empty")
    if "\x00" in text:
        raise InvalidInputError("query", "has U+0000 in it: pass values as params")
    return text


def _columns(columns: object) -> list[str]:
    names = [
        check_text(f"columns[{at}]", name) for at, name in enumerate(check_list("columns", columns))
    ]
    if not 0 < len(names) == len(set(names)):
        raise InvalidInputError("columns", "must be names, at least one, and none twice")
    return names
