"""A naive ``Graph``: two lists, and walks that look at every edge at every step."""

from __future__ import annotations

import copy
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.graph import Entity, Relationship, SubGraph


class NaiveGraph:
    """Rows are pairs of a tenant and an entity or a relationship."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.tenant = tenant
        self.rows = shared.table("graph")

    def _all(self, kind: type[Any]) -> list[Any]:
        return [one for tenant, one in self.rows if tenant == self.tenant and type(one) is kind]

    def _remove(self, gone: list[Any]) -> bool:
        before = len(self.rows)
        self.rows[:] = [row for row in self.rows if row[0] != self.tenant or row[1] not in gone]
        return len(self.rows) < before

    def _put(self, new: list[Any], kind: type[Any]) -> list[str]:
        ids = [one.id for one in new]
        self._remove([one for one in self._all(kind) if one.id in ids])
        self.rows.extend((self.tenant, copy.deepcopy(one)) for one in new)
        return ids

    async def add_entities(self, entities: list[Entity]) -> list[str]:
        """New rows in place of old ones."""
        if len({one.id for one in entities}) < len(entities):
            raise InvalidInputError("entities", "an id twice")
        return self._put(entities, Entity)

    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        """The same, if both ends of each are there."""
        if len({one.id for one in relationships}) < len(relationships):
            raise InvalidInputError("relationships", "an id twice")
        known = [one.id for one in self._all(Entity)]
        for one in relationships:
            if one.source_id not in known or one.target_id not in known:
                raise NotFoundError("entity", one.id)
        return self._put(relationships, Relationship)

    async def list_entities(self, *, limit: int = 100, after: str | None = None) -> list[Entity]:
        """Sort all of them."""
        found = sorted(self._all(Entity), key=lambda one: str(one.id))
        return copy.deepcopy([one for one in found if after is None or one.id > after][:limit])

    async def list_relationships(
        self,
        entity_id: str,
        *,
        relationship_types: list[str] | None = None,
        direction: str = "both",
        limit: int = 100,
        after: str | None = None,
    ) -> list[Relationship]:
        """Look at every edge."""
        ends = {"out": ("source_id",), "in": ("target_id",)}.get(
            direction, ("source_id", "target_id")
        )
        found = [
            one
            for one in sorted(self._all(Relationship), key=lambda one: str(one.id))
            if any(getattr(one, end) == entity_id for end in ends)
            and (relationship_types is None or one.type in relationship_types)
            and (after is None or one.id > after)
        ]
        return copy.deepcopy(found[:limit])

    async def degrees(self, entity_ids: list[str]) -> list[int]:
        """Count the edges of each."""
        edges = self._all(Relationship)
        return [sum(name in (one.source_id, one.target_id) for one in edges) for name in entity_ids]

    async def get_neighbors(
        self,
        entity_id: str,
        *,
        depth: int = 1,
        relationship_types: list[str] | None = None,
        direction: str = "both",
        limit: int = 1000,
    ) -> SubGraph:
        """The distance of every entity, step by step."""
        entities = self._all(Entity)
        edges = [
            one
            for one in self._all(Relationship)
            if relationship_types is None or one.type in relationship_types
        ]
        distances = {one.id: 0 for one in entities if one.id == entity_id}
        for step in range(1, depth + 1):
            before = list(distances)
            for one in edges:
                if one.source_id in before and direction in ("both", "out"):
                    distances.setdefault(one.target_id, step)
                if one.target_id in before and direction in ("both", "in"):
                    distances.setdefault(one.source_id, step)
        found = sorted(distances, key=lambda name: (distances[name], name))
        kept = found[:limit]
        return SubGraph(
            tuple(copy.deepcopy(one) for name in kept for one in entities if one.id == name),
            tuple(
                copy.deepcopy(one)
                for one in sorted(edges, key=lambda one: str(one.id))
                if one.source_id in kept and one.target_id in kept
            ),
            len(found) > len(kept),
        )

    async def delete_entity(self, entity_id: str) -> bool:
        """All rows but this one and its edges."""
        self._remove(
            [one for one in self._all(Relationship) if entity_id in (one.source_id, one.target_id)]
        )
        return self._remove([one for one in self._all(Entity) if one.id == entity_id])

    async def delete_relationship(self, relationship_id: str) -> bool:
        """All rows but this one."""
        return self._remove([one for one in self._all(Relationship) if one.id == relationship_id])

    async def find_entities(self, names: list[str]) -> list[Entity]:
        """The state machine's names are single words of small and capital letters."""
        wanted = [name.lower() for name in names]
        found = [
            one
            for one in self._all(Entity)
            if one.id.lower() in wanted or (one.properties.get("name") or "").lower() in wanted
        ]
        return sorted(copy.deepcopy(found), key=lambda one: str(one.id))
