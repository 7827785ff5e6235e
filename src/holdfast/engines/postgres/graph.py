"""The knowledge graph in plain tables: a traversal of any depth is one statement."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.graph_text import (
    entity_text,
    read_entities,
    read_relationships,
    relationship_text,
)
from holdfast.engines.postgres.index_key import index_key
from holdfast.engines.postgres.queries import load
from holdfast.spi.graph import GraphStorage
from holdfast.spi.graph_draft import EdgePage, EntityDraft, RelationshipDraft, Walk
from holdfast.spi.id_page import IdPage
from holdfast.values.graph import Entity, Relationship, SubGraph

_SQL = load("graph")
_by_id = attrgetter("id")


class PostgresGraph(GraphStorage):
    """Stores the graph in three tables: entities, their names, and relationships.

    ::

        graph = PostgresGraph(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def put_entities(self, drafts: Sequence[EntityDraft]) -> None:
        """Store entities."""
        ids = [draft.id for draft in drafts]
        names = [(draft.id, index_key(name)) for draft in drafts for name in draft.names]
        await self._engine.fetch(
            _SQL["add_entities"],
            *(self._tenant, ids, list(map(entity_text, drafts))),
            *([entity for entity, _ in names], [name for _, name in names]),
            [draft.subject for draft in drafts],
            safe=True,
        )

    async def put_relationships(self, drafts: Sequence[RelationshipDraft]) -> None:
        """Store relationships."""
        ids = [draft.id for draft in drafts]
        await self._engine.fetch(
            _SQL["add_relationships"],
            *(self._tenant, ids),
            *([draft.source for draft in drafts], [draft.target for draft in drafts]),
            *([draft.type for draft in drafts], list(map(relationship_text, drafts))),
            [draft.subject for draft in drafts],
            safe=True,
        )

    async def walk(self, walk: Walk) -> SubGraph:
        """Return the entities and relationships that a traversal reaches from an entity."""
        rows = await self._engine.search(
            _SQL["walk"],
            *(self._tenant, walk.start, walk.depth, walk.types),
            *(walk.direction != "in", walk.direction != "out", walk.max_entities),
        )
        nearer, numbers, entities, relationships, more = rows[0][0]
        between = read_relationships(relationships)
        between.sort(key=_by_id)
        return SubGraph(
            _ordered(nearer, numbers, read_entities(entities)), tuple(between), more is not None
        )

    async def delete_entity(self, entity_id: str) -> bool:
        """Delete an entity and its relationships. Returns whether it existed."""
        gone: bool = await self._engine.fetchval(
            _SQL["delete_entity"], self._tenant, entity_id, safe=False
        )
        return gone

    async def delete_relationship(self, relationship_id: str) -> bool:
        """Delete a relationship. Returns whether it existed."""
        gone = await self._engine.fetchval(
            _SQL["delete_relationship"], self._tenant, relationship_id, safe=False
        )
        return gone is True

    async def find(self, names: Sequence[str]) -> list[Entity]:
        """Return the entities that have one of these names."""
        wanted = list(map(index_key, names))
        found = await self._engine.fetchval(_SQL["find_entities"], self._tenant, wanted, safe=True)
        return read_entities(found)

    async def page(self, page: IdPage) -> list[Entity]:
        """Return a page of the entities, by id."""
        args = (self._tenant, page.after, *page.ranges(), page.limit)
        return read_entities(await self._engine.fetchval(_SQL["page"], *args, safe=True))

    async def edges(self, page: EdgePage) -> list[Relationship]:
        """Return a page of the relationships of an entity, by id."""
        found = await self._engine.fetchval(
            _SQL["edges"],
            *(self._tenant, page.entity, page.types),
            *(page.direction != "in", page.direction != "out", page.after, page.limit),
            safe=True,
        )
        return read_relationships(found)

    async def degrees(self, ids: Sequence[str]) -> list[int]:
        """Return how many relationships each entity has."""
        return list(
            await self._engine.fetchval(_SQL["degrees"], self._tenant, list(ids), safe=True)
        )


def _ordered(nearer: str | None, numbers: str | None, entities: list[Entity]) -> tuple[Entity, ...]:
    """Sort entities by their distance from the start, then by id; others come last.

    Sorting here is faster than in Postgres, which would have to compare texts.
    """
    left = dict(zip((numbers or "").split(), entities, strict=True))
    found: list[Entity] = []
    for level in (nearer or "").split(" 0 "):
        here = [left.pop(number) for number in left.keys() & level.split(" ")]
        here.sort(key=_by_id)
        found += here
    found += sorted(left.values(), key=_by_id)
    return tuple(found)
