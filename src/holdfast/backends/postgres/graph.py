"""The knowledge graph in plain tables: one statement for a walk, however far it goes."""

from __future__ import annotations

from typing import Any

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.index_key import index_key
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_id
from holdfast.kernel.core.codec import decode_json
from holdfast.kernel.storage.graph import (
    MAX_ENTITIES,
    Direction,
    Entity,
    GraphStore,
    Relationship,
    SubGraph,
)
from holdfast.kernel.storage.graph_draft import (
    Walk,
    draft_entities,
    draft_relationships,
    folded_names,
)

_SQL = load("graph")
_ENTITY, _RELATIONSHIP, _TRUNCATED = 1, 2, 3


class PostgresGraph(GraphStore):
    """``GraphStore`` of the Postgres engine.

    ::

        graph = PostgresGraph(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def add_entities(self, entities: list[Entity]) -> list[str]:
        """Store entities, all or none; one whose id is there is replaced, its edges stay."""
        drafts = draft_entities(entities)
        if not drafts:
            return []
        ids = [draft.id for draft in drafts]
        names = [(draft.id, index_key(name)) for draft in drafts for name in draft.names]
        await self._engine.fetch(
            _SQL["add_entities"],
            *(self._tenant, ids),
            *([draft.label for draft in drafts], [draft.properties for draft in drafts]),
            *([entity for entity, _ in names], [name for _, name in names]),
            safe=True,
        )
        return ids

    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        """Store relationships, all or none; ``NotFoundError`` if an end is not there."""
        drafts = draft_relationships(relationships)
        if not drafts:
            return []
        ids = [draft.id for draft in drafts]
        await self._engine.fetch(
            _SQL["add_relationships"],
            *(self._tenant, ids),
            *([draft.source for draft in drafts], [draft.target for draft in drafts]),
            *([draft.type for draft in drafts], [draft.properties for draft in drafts]),
            safe=True,
        )
        return ids

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
        walk = Walk.of(entity_id, depth, relationship_types, direction, max_entities)
        rows = await self._engine.fetch(
            _SQL["walk"],
            *(self._tenant, walk.start, walk.depth, walk.types),
            *(walk.direction != "in", walk.direction != "out", walk.max_entities),
            safe=True,
        )
        return SubGraph(
            tuple(_entity(row) for row in rows if row["kind"] == _ENTITY),
            tuple(_relationship(row) for row in rows if row["kind"] == _RELATIONSHIP),
            any(row["kind"] == _TRUNCATED for row in rows),
        )

    async def delete_entity(self, entity_id: str) -> bool:
        """Remove an entity and its relationships; whether it was there."""
        gone: bool = await self._engine.fetchval(
            _SQL["delete_entity"], self._tenant, check_id("entity_id", entity_id), safe=False
        )
        return gone

    async def delete_relationship(self, relationship_id: str) -> bool:
        """Remove one relationship; whether it was there."""
        key = check_id("relationship_id", relationship_id)
        gone = await self._engine.fetchval(
            _SQL["delete_relationship"], self._tenant, key, safe=False
        )
        return gone is True

    async def find_entities(self, names: list[str]) -> list[Entity]:
        """The entities whose id or name is one of these, case and punctuation aside, by id."""
        wanted = list(map(index_key, folded_names(names)))
        if not wanted:
            return []
        rows = await self._engine.fetch(_SQL["find_entities"], self._tenant, wanted, safe=True)
        return list(map(_entity, rows))


def _entity(row: Any) -> Entity:
    return Entity(row["label"], decode_json(row["properties"]), row["id"])


def _relationship(row: Any) -> Relationship:
    return Relationship(
        row["source"], row["target"], row["label"], decode_json(row["properties"]), row["id"]
    )
