from __future__ import annotations

import dataclasses
from typing import Any

from holdfast.backends.inmemory.graph import InMemoryGraph
from holdfast.kernel.core.checks import check_count
from holdfast.kernel.core.errors import NotFoundError
from holdfast.kernel.storage.graph import Entity, Relationship, SubGraph
from tests.mutants.registry import mutant


@mutant(
    "graph",
    "test_all_relationships_between_the_returned_entities_are_returned",
)
class OnlyTheEdgesWalked(InMemoryGraph):
    """A walk returns the relationships it went along, not those between what it found."""

    async def get_neighbors(self, entity_id: str, **options: Any) -> SubGraph:
        found = await super().get_neighbors(entity_id, **options)
        if options.get("depth", 1) != 1 or options.get("max_entities", 1000) < 1000:
            return found
        walked = [one for one in found.relationships if entity_id in (one.source_id, one.target_id)]
        return dataclasses.replace(found, relationships=tuple(walked))


@mutant("graph", "test_delete_entity_removes_its_relationships")
class KeepsTheEdgesOfTheDeleted(InMemoryGraph):
    """The relationships that left a deleted entity come back when it is added again."""

    async def delete_entity(self, entity_id: str) -> bool:
        node = self._data.nodes.get(entity_id)
        edges = {
            key: self._data.edges[key]
            for key in (node.leaving if node else ())
            if self._data.edges[key].target != entity_id
        }
        gone = await super().delete_entity(entity_id)
        self._kept = {**getattr(self, "_kept", {}), **edges}
        return gone

    async def add_entities(self, entities: list[Entity]) -> list[str]:
        ids = await super().add_entities(entities)
        for key, edge in list(getattr(self, "_kept", {}).items()):
            if edge.source in ids and edge.target in self._data.nodes:
                await self.add_relationships(
                    [Relationship(edge.source, edge.target, edge.type, {}, key)]
                )
        return ids


@mutant("graph", "test_a_relationship_to_a_missing_entity_is_refused_the_batch_with_it")
class WritesUpToTheMissingEnd(InMemoryGraph):
    """The relationships before the refused one are stored."""

    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        try:
            return await super().add_relationships(relationships)
        except NotFoundError:
            for one in relationships[:-1]:
                await super().add_relationships([one])
            raise


@mutant(
    "graph",
    "test_a_walk_is_undirected_by_default",
    "test_relationship_types_narrows_the_walk_and_the_result",
    "test_add_relationships_with_an_existing_id_replaces_it_ends_included",
)
class OutIsTheDefault(InMemoryGraph):
    """A walk follows relationships forward unless it is told otherwise."""

    async def get_neighbors(self, entity_id: str, **options: Any) -> SubGraph:
        return await super().get_neighbors(entity_id, **{"direction": "out"} | options)


@mutant("graph", "test_an_empty_list_of_relationship_types_matches_none")
class NoTypesMeansAll(InMemoryGraph):
    """An empty list of types is read as no list."""

    async def get_neighbors(self, entity_id: str, **options: Any) -> SubGraph:
        if options.get("relationship_types") == []:
            del options["relationship_types"]
        return await super().get_neighbors(entity_id, **options)


@mutant("graph", "test_max_entities_caps_the_result_and_truncated_says_so")
class TruncatedWhenFull(InMemoryGraph):
    """A result of exactly the most entities says that there are more."""

    async def get_neighbors(self, entity_id: str, **options: Any) -> SubGraph:
        found = await super().get_neighbors(entity_id, **options)
        full = len(found.entities) == options.get("max_entities", 1000)
        return dataclasses.replace(
            found, truncated=(full and bool(found.entities)) or found.truncated
        )


@mutant(
    "graph",
    "test_a_walk_goes_as_many_steps_as_its_depth",
)
class StopsAtThreeSteps(InMemoryGraph):
    """A walk never goes further than three steps."""

    async def get_neighbors(self, entity_id: str, **options: Any) -> SubGraph:
        depth = check_count("depth", options.get("depth", 1))
        return await super().get_neighbors(entity_id, **options | {"depth": min(3, depth)})


@mutant("graph", "test_add_entities_with_an_existing_id_replaces_it_and_keeps_its_relationships")
class ReplacingCutsTheEdges(InMemoryGraph):
    """An entity that is replaced loses its relationships."""

    async def add_entities(self, entities: list[Entity]) -> list[str]:
        ids = await super().add_entities(entities)
        for key in ids:
            node = self._data.nodes[key]
            for edge in node.leaving | node.reaching:
                self._cut(edge)
        return ids


@mutant("graph", "test_find_entities_follows_a_changed_name")
class OldNamesStay(InMemoryGraph):
    """An entity is still found by the name it had before."""

    def _forget_names(self, key: str, node: Any) -> None:
        if len(node.keys) < 2:
            super()._forget_names(key, node)
