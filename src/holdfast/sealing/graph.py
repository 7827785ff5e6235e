"""An encrypted knowledge graph: properties are encrypted, names are keyed digests."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Seal
from holdfast.spi.graph import CypherStorage, GraphStorage
from holdfast.spi.graph_draft import EdgePage, EntityDraft, RelationshipDraft, Walk
from holdfast.spi.id_page import IdPage
from holdfast.values.errors import NotSupportedError
from holdfast.values.graph import Entity, Relationship, SubGraph
from holdfast.values.owners import split_owned
from holdfast.values.sealed import is_sealed


class SealedGraph(GraphStorage):
    """Encrypts what a ``GraphStorage`` stores; Cypher queries are then refused.

    ::

        graph = SealedGraph(PostgresGraph(engine), sealing)
    """

    def __init__(self, inner: GraphStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal

    async def put_entities(self, drafts: Sequence[EntityDraft]) -> None:
        """Store entities."""
        blind, sealed = await self._seal.blind(), []
        for draft in drafts:
            self._seal.check("properties", draft.properties)
            owner = split_owned(draft.id)[0]
            sealer = await self._seal.sealer_about(owner, draft.subject or owner)
            if sealer is None or blind is None:
                sealed.append(draft)
                continue
            sealed.append(
                dataclasses.replace(
                    draft,
                    properties=sealer.json(_entity(draft.id), draft.properties),
                    names=[blind.digest("entity", name) for name in draft.names],
                )
            )
        await self._inner.put_entities(sealed)

    async def put_relationships(self, drafts: Sequence[RelationshipDraft]) -> None:
        """Store relationships."""
        sealed = []
        for draft in drafts:
            self._seal.check("properties", draft.properties)
            owner = split_owned(draft.source)[0]
            sealer = await self._seal.sealer_about(owner, draft.subject or owner)
            if sealer is not None:
                properties = sealer.json(_relationship(draft.id), draft.properties)
                draft = dataclasses.replace(draft, properties=properties)  # noqa: PLW2901
            sealed.append(draft)
        await self._inner.put_relationships(sealed)

    async def walk(self, walk: Walk) -> SubGraph:
        """Return the part of the graph that a traversal reaches."""
        found = await self._inner.walk(walk)
        plain = not any(is_sealed(one.properties) for one in found.entities)
        if plain and not any(is_sealed(one.properties) for one in found.relationships):
            return found
        return dataclasses.replace(
            found,
            entities=tuple(await self._entities(found.entities)),
            relationships=tuple(await self._relationships(found.relationships)),
        )

    async def delete_entity(self, entity_id: str) -> bool:
        """Delete an entity and its relationships."""
        return await self._inner.delete_entity(entity_id)

    async def delete_relationship(self, relationship_id: str) -> bool:
        """Delete a relationship."""
        return await self._inner.delete_relationship(relationship_id)

    async def find(self, names: Sequence[str]) -> list[Entity]:
        """Return the entities that have one of these names."""
        blind = await self._seal.blind()
        asked = names if blind is None else [blind.digest("entity", name) for name in names]
        return await self._entities(await self._inner.find(asked))

    async def page(self, page: IdPage) -> list[Entity]:
        """Return a page of the entities."""
        return await self._entities(await self._inner.page(page))

    async def edges(self, page: EdgePage) -> list[Relationship]:
        """Return a page of the relationships of an entity."""
        return await self._relationships(await self._inner.edges(page))

    async def degrees(self, ids: Sequence[str]) -> list[int]:
        """Return how many relationships each entity has."""
        return await self._inner.degrees(ids)

    async def query(
        self, text: str, params: dict[str, Any], columns: int, *, write: bool
    ) -> Sequence[Sequence[Any]]:
        """Run a Cypher query. Raises ``NotSupportedError`` if the graph is encrypted."""
        if self._seal.keys is not None:
            raise NotSupportedError(
                "sealed",
                "Cypher",
                why="the stored properties are encrypted: use get_neighbors or find_entities",
            )
        inner = cast("CypherStorage", self._inner)
        return await inner.query(text, params, columns, write=write)

    async def _entities(self, found: Sequence[Entity]) -> list[Entity]:
        opener = await self._seal.opener(*(one.properties for one in found))
        return [
            dataclasses.replace(
                one,
                properties=opener.json(split_owned(one.id)[0], _entity(one.id), one.properties),
            )
            for one in found
        ]

    async def _relationships(self, found: Sequence[Relationship]) -> list[Relationship]:
        opener = await self._seal.opener(*(one.properties for one in found))
        return [
            dataclasses.replace(
                one,
                properties=opener.json(
                    split_owned(one.source_id)[0], _relationship(one.id), one.properties
                ),
            )
            for one in found
        ]


def _entity(id: str) -> Place:
    return Place("entity", split_owned(id)[1], "properties")


def _relationship(id: str) -> Place:
    return Place("relationship", split_owned(id)[1], "properties")
