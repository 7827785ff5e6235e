"""Finds what an erasure deletes from a graph that another engine stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from holdfast.spi.erasure import ErasureScope, Key, StoreFinder
from holdfast.spi.graph import GraphStorage
from holdfast.spi.graph_draft import EdgePage
from holdfast.spi.id_page import IdPage
from holdfast.values.graph import Entity

_PAGE = 500


class GraphNames(StoreFinder):
    """Finds entities by their stored ids and subjects; it reads the whole graph.

    ::

        entities = GraphNames(AgeGraph(age, tenant="acme"))
    """

    def __init__(self, graph: GraphStorage) -> None:
        self._graph = graph

    async def find(self, scope: ErasureScope, limit: int | None) -> Sequence[Key]:
        """Return the ids of the entities in scope."""
        found: list[Key] = []
        if scope.kind in ("tenant", "subject"):
            async for one in self.entities():
                if scope.has_id(one.id) or scope.is_about(one.subject):
                    found.append((one.id,))
                if len(found) == limit:
                    break
        return found

    async def entities(self) -> AsyncIterator[Entity]:
        """Yield all entities, by id."""
        after = ""
        while page := await self._graph.page(IdPage("", "", after, _PAGE)):
            for one in page:
                yield one
            after = page[-1].id


class RelationshipNames(GraphNames):
    """Finds the relationships about a subject in the graphs of other owners.

    ::

        relationships = RelationshipNames(AgeGraph(age, tenant="acme"))
    """

    async def find(self, scope: ErasureScope, limit: int | None) -> Sequence[Key]:
        """Return the ids of the relationships in scope."""
        found: list[Key] = []
        if scope.kind != "subject":
            return found
        async for entity in self.entities():
            after = ""
            while page := await self._graph.edges(EdgePage(entity.id, None, "out", after, _PAGE)):
                found += [
                    (one.id,)
                    for one in page
                    if scope.is_about(one.subject) and not scope.has_id(one.id)
                ]
                after = page[-1].id
            if limit is not None and len(found) >= limit:
                break
        return found[:limit]
