from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from holdfast.contracts.graph import MAX_ENTITIES, KnowledgeGraph
from holdfast.engines.inmemory.graph import InMemoryGraph
from holdfast.spi.graph_draft import EdgePage, EntityDraft, RelationshipDraft, Walk
from holdfast.spi.id_page import IdPage
from holdfast.values.errors import NotFoundError
from holdfast.values.graph import Entity, Relationship, SubGraph
from tests.mutants.registry import mutant


@mutant(
    "graph",
    "test_all_relationships_between_the_returned_entities_are_returned",
)
class OnlyTheEdgesWalked(InMemoryGraph):
    """A walk returns the relationships it went along, not those between what it found."""

    async def walk(self, walk: Walk) -> SubGraph:
        found = await super().walk(walk)
        if walk.depth != 1 or walk.max_entities < MAX_ENTITIES:
            return found
        start = walk.start
        walked = [one for one in found.relationships if start in (one.source_id, one.target_id)]
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

    async def put_entities(self, drafts: Sequence[EntityDraft]) -> None:
        await super().put_entities(drafts)
        ids = [draft.id for draft in drafts]
        for key, edge in list(getattr(self, "_kept", {}).items()):
            if edge.source in ids and edge.target in self._data.nodes:
                await self.put_relationships(
                    [RelationshipDraft(key, edge.source, edge.target, edge.type, "{}")]
                )


@mutant("graph", "test_a_relationship_to_a_missing_entity_is_refused_the_batch_with_it")
class WritesUpToTheMissingEnd(InMemoryGraph):
    """The relationships before the refused one are stored."""

    async def put_relationships(self, drafts: Sequence[RelationshipDraft]) -> None:
        try:
            await super().put_relationships(drafts)
        except NotFoundError:
            for one in drafts[:-1]:
                await super().put_relationships([one])
            raise


@mutant(
    "graph",
    "test_a_walk_is_undirected_by_default",
    "test_relationship_types_narrows_the_walk_and_the_result",
    "test_add_relationships_with_an_existing_id_replaces_it_ends_included",
)
class OutIsTheDefault(KnowledgeGraph):
    """A walk follows relationships forward unless it is told otherwise."""

    async def get_neighbors(self, entity_id: str, **options: Any) -> SubGraph:
        return await super().get_neighbors(entity_id, **{"direction": "out"} | options)


@mutant("graph", "test_an_empty_list_of_relationship_types_matches_none")
class NoTypesMeansAll(KnowledgeGraph):
    """An empty list of types is read as no list."""

    async def get_neighbors(self, entity_id: str, **options: Any) -> SubGraph:
        if options.get("relationship_types") == []:
            del options["relationship_types"]
        return await super().get_neighbors(entity_id, **options)


@mutant("graph", "test_a_limit_caps_the_result_and_truncated_says_so")
class TruncatedWhenFull(InMemoryGraph):
    """A result of exactly the most entities says that there are more."""

    async def walk(self, walk: Walk) -> SubGraph:
        found = await super().walk(walk)
        full = len(found.entities) == walk.max_entities
        return dataclasses.replace(
            found, truncated=(full and bool(found.entities)) or found.truncated
        )


@mutant(
    "graph",
    "test_a_walk_goes_as_many_steps_as_its_depth",
)
class StopsAtThreeSteps(InMemoryGraph):
    """A walk never goes further than three steps."""

    async def walk(self, walk: Walk) -> SubGraph:
        return await super().walk(dataclasses.replace(walk, depth=min(3, walk.depth)))


@mutant("graph", "test_add_entities_with_an_existing_id_replaces_it_and_keeps_its_relationships")
class ReplacingCutsTheEdges(InMemoryGraph):
    """An entity that is replaced loses its relationships."""

    async def put_entities(self, drafts: Sequence[EntityDraft]) -> None:
        await super().put_entities(drafts)
        for draft in drafts:
            node = self._data.nodes[draft.id]
            for edge in node.leaving | node.reaching:
                self._cut(edge)


@mutant("graph", "test_find_entities_follows_a_changed_name")
class OldNamesStay(InMemoryGraph):
    """An entity is still found by the name it had before."""

    def _forget_names(self, key: str, node: Any) -> None:
        if len(node.keys) < 2:
            super()._forget_names(key, node)


@mutant("graph", "test_entities_are_those_of_the_owner_who_asks_or_those_that_nobody_owns")
class ListsEntitiesOfEveryOwner(InMemoryGraph):
    """The page of a tenant has the entities of its owners too."""

    async def page(self, page: IdPage) -> list[Entity]:
        return await super().page(dataclasses.replace(page, other=""))


@mutant("graph", "test_relationships_of_an_entity_are_listed_by_code_points_of_their_ids")
class ListsRelationshipsThatLeaveAlone(InMemoryGraph):
    """An entity to which relationships lead has none of them in its list."""

    async def edges(self, page: EdgePage) -> list[Relationship]:
        return await super().edges(dataclasses.replace(page, direction="out"))


@mutant("graph", "test_a_limit_and_after_select_a_page_of_the_relationships")
class ALaterPageOfRelationshipsLacksItsFirst(InMemoryGraph):
    """The relationship that follows ``after`` is left out."""

    async def edges(self, page: EdgePage) -> list[Relationship]:
        found = await super().edges(page)
        return found[1:] if page.after else found


@mutant("graph", "test_relationships_of_an_entity_are_listed_by_type_and_direction")
class ListsRelationshipsOfAnyType(InMemoryGraph):
    """The types are not looked at."""

    async def edges(self, page: EdgePage) -> list[Relationship]:
        return await super().edges(dataclasses.replace(page, types=None))


@mutant("graph", "test_relationships_of_an_unknown_entity_are_none")
class ListsRelationshipsOfTheFirstEntity(InMemoryGraph):
    """An unknown entity stands for the first one."""

    async def edges(self, page: EdgePage) -> list[Relationship]:
        if page.entity not in self._data.nodes:
            page = dataclasses.replace(page, entity=next(iter(self._data.nodes), page.entity))
        return await super().edges(page)


@mutant(
    "graph",
    "test_degrees_counts_the_relationships_of_each_entity_and_zero_for_an_unknown_one",
)
class CountsASelfLoopTwice(InMemoryGraph):
    """Both ends of a relationship to itself count."""

    async def degrees(self, ids: Sequence[str]) -> list[int]:
        nodes = (self._data.nodes.get(one) for one in ids)
        return [0 if one is None else len(one.leaving) + len(one.reaching) for one in nodes]


@mutant("graph", "test_an_entity_and_a_relationship_have_the_subject_of_their_last_add")
class TheFirstSubjectOfAnEntityStays(InMemoryGraph):
    """An entity that is added again keeps whom it was about."""

    async def put_entities(self, drafts: Sequence[EntityDraft]) -> None:
        nodes = self._data.nodes
        await super().put_entities(
            [
                dataclasses.replace(one, subject=nodes[one.id].subject) if one.id in nodes else one
                for one in drafts
            ]
        )


@mutant("graph", "test_a_subject_of_an_entity_or_a_relationship_that_is_not_an_id_is_refused")
class AnySubjectOfARelationship(KnowledgeGraph):
    """Whom a relationship is about is not checked."""

    async def add_relationships(self, relationships: list[Relationship]) -> list[str]:
        plain = [dataclasses.replace(one, subject="") for one in relationships]
        return await super().add_relationships(plain)
