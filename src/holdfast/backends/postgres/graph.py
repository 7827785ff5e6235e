"""The knowledge graph in plain tables: one statement for a walk, however far it goes."""

from __future__ import annotations

from operator import attrgetter

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.index_key import index_key
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_id
from holdfast.kernel.storage.graph import (
    MAX_ENTITIES,
    Direction,
    Entity,
    Graph,
    Relationship,
    SubGraph,
)
from holdfast.kernel.storage.graph_draft import (
    Walk,
    draft_entities,
    draft_relationships,
    folded_names,
)
from holdfast.kernel.storage.graph_text import (
    entity_text,
    read_entities,
    read_relationships,
    relationship_text,
)

_SQL = load("graph")
_by_id = attrgetter("id")


class PostgresGraph(Graph):
    """``Graph`` of the Postgres engine.

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
            *(self._tenant, ids, list(map(entity_text, drafts))),
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
            *([draft.type for draft in drafts], list(map(relationship_text, drafts))),
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
        nearer, numbers, entities, relationships, more = await self._engine.fetchval(
            _SQL["walk"],
            *(self._tenant, walk.start, walk.depth, walk.types),
            *(walk.direction != "in", walk.direction != "out", walk.max_entities),
            safe=True,
        )
        between = read_relationships(relationships)
        between.sort(key=_by_id)
        return SubGraph(
            _ordered(nearer, numbers, read_entities(entities)), tuple(between), more is not None
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
        found = await self._engine.fetchval(_SQL["find_entities"], self._tenant, wanted, safe=True)
        return read_entities(found)


def _ordered(nearer: str | None, numbers: str | None, entities: list[Entity]) -> tuple[Entity, ...]:
    """By the first level that has the entity's number, and then by id; the last level is the rest.

    Postgres would have to compare names for it, and that is what it is slow at.
    """
    left = dict(zip((numbers or "").split(), entities, strict=True))
    found: list[Entity] = []
    for level in (nearer or "").split(" 0 "):
        here = [left.pop(number) for number in left.keys() & level.split(" ")]
        here.sort(key=_by_id)
        found += here
    found += sorted(left.values(), key=_by_id)
    return tuple(found)
