"""Finds the entities that an erasure deletes from a graph that another engine stores."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.spi.erasure import ErasureScope, Key, StoreFinder
from holdfast.spi.graph import GraphStorage
from holdfast.spi.id_page import IdPage

_PAGE = 500


class GraphNames(StoreFinder):
    """Finds entities by their stored ids. It reads the ids of the scope's owner, or all.

    ::

        entities = GraphNames(AgeGraph(age, tenant="acme"))
    """

    def __init__(self, graph: GraphStorage) -> None:
        self._graph = graph

    async def find(self, scope: ErasureScope, limit: int | None) -> Sequence[Key]:
        """Return the ids of the entities in scope."""
        found: list[Key] = []
        after = ""
        while scope.kind in ("tenant", "subject"):
            page = await self._graph.page(IdPage("", "", after, _PAGE))
            found += [(one.id,) for one in page if scope.has_id(one.id)]
            if len(page) < _PAGE or (limit is not None and len(found) >= limit):
                break
            after = page[-1].id
        return found[:limit]
