"""Vectors on pgvector: exact while a collection is small, through its index when it is large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.backends.cosine import rounded_cosines
from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.filter_sql import FilterSql, filterable
from holdfast.backends.postgres.indexes import Near
from holdfast.backends.postgres.queries import filled, load
from holdfast.kernel.core.checks import check_count, check_id, check_ids, check_vector
from holdfast.kernel.core.errors import InvalidInputError
from holdfast.kernel.core.filters import Filter, parse
from holdfast.kernel.storage.document_draft import (
    draft_documents,
    embed_drafts,
    stored_document,
    stored_result,
)
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.vector import Document, SearchResult, VectorStore

MAX_DIMENSION = 16_000
"""As many numbers as pgvector keeps in a vector."""

_SQL = load("vector")
_SEARCH_PARAMETERS = 7
_EPSILON = float(np.finfo(np.float32).eps)
_MOST = 1 << 40


class PostgresVectors(VectorStore):
    """``VectorStore`` of the Postgres engine.

    ::

        vectors = PostgresVectors(engine, tenant="acme", embedder=embedder)
    """

    def __init__(
        self, engine: Postgres, *, tenant: str = "default", embedder: Embedder | None = None
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._embedder = embedder
        # Which collections were found to be searched through an index: asked first that way.
        self._indexed: set[str] = set()

    async def add(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        """Store new documents, all or none; ``AlreadyExistsError`` if an id is taken."""
        return await self._write(documents, collection, replace=False)

    async def upsert(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        """Store documents, all or none; one that is there is replaced as a whole."""
        return await self._write(documents, collection, replace=True)

    async def search(
        self,
        query_embedding: list[float],
        *,
        collection: str = "default",
        limit: int = 5,
        filter: dict[str, Any] | None = None,
    ) -> list[SearchResult]:
        """The documents closest to a vector that pass the filter, the closest first."""
        name = check_id("collection", collection)
        query = check_vector("query_embedding", query_embedding)
        limit = min(check_count("limit", limit), _MOST)
        wanted = parse(filter)
        rows = await self._search(name, query, limit, wanted, indexed=name in self._indexed)
        if not rows:
            return []
        if rows[0]["dimension"] != len(query):
            check_vector("query_embedding", query, dimension=rows[0]["dimension"])
        if rows[0]["indexed"] and name not in self._indexed:
            self._indexed.add(name)
            rows = await self._search(name, query, limit, wanted, indexed=True)
        elif not rows[0]["indexed"]:
            self._indexed.discard(name)
        return _ranked(query, limit, [row for row in rows if row["id"] is not None])

    async def get(self, ids: list[str], *, collection: str = "default") -> list[Document]:
        """The documents with these ids, in this order; unknown ids are left out."""
        name = check_id("collection", collection)
        wanted = list(dict.fromkeys(check_ids("ids", ids)))
        if not wanted:
            return []
        rows = await self._engine.fetch(_SQL["get"], self._tenant, name, wanted, safe=True)
        found = {row["id"]: row for row in rows}
        return [
            stored_document(
                key, found[key]["content"], found[key]["metadata"], _numbers(found[key]).tolist()
            )
            for key in wanted
            if key in found
        ]

    async def delete(self, ids: list[str], *, collection: str = "default") -> int:
        """Remove documents; how many there were."""
        name = check_id("collection", collection)
        wanted = check_ids("ids", ids)
        if not wanted:
            return 0
        gone: int = await self._engine.fetchval(
            _SQL["delete"], self._tenant, name, wanted, safe=False
        )
        return gone

    async def list_collections(self) -> list[str]:
        """The names of the collections that have documents, in order."""
        rows = await self._engine.fetch(_SQL["list_collections"], self._tenant, safe=True)
        return [row["name"] for row in rows]

    async def delete_collection(self, collection: str) -> int:
        """Remove a collection with all its documents; how many there were."""
        name = check_id("collection", collection)
        gone: int = await self._engine.fetchval(
            _SQL["delete_collection"], self._tenant, name, safe=False
        )
        return gone

    async def _search(
        self, name: str, query: list[float], limit: int, wanted: Filter, *, indexed: bool
    ) -> Sequence[Any]:
        def compiled(*, planned: bool) -> FilterSql:
            return FilterSql(
                wanted,
                first=_SEARCH_PARAMETERS + 1,
                tenant=self._tenant,
                collection=name,
                planned=planned,
            )

        condition = compiled(planned=False)
        parts = {"/* filter */ TRUE": condition.condition}
        if condition.indexed:
            # The index on the metadata knows the collection: the primary key is not needed.
            parts["/* scope */ = TRUE"] = "IS TRUE"
        if indexed:
            near = Near.of(len(query))
            parts |= {
                "/* planned */ TRUE": compiled(planned=True).condition,
                "/* dimension */ 2": str(len(query)),
                "/* near */ embedding": near.embedding,
                "/* query */ (SELECT $3::real[]::public.vector)": near.query,
            }
        return await self._engine.fetch(
            filled(_SQL["search_indexed"] if indexed else _SQL["search"], parts),
            *(self._tenant, name, query, len(query)),
            *(limit, 2 * limit + 16 if limit else 0, len(query) * _EPSILON),
            *condition.parameters,
            safe=True,
        )

    async def _write(
        self, documents: list[Document], collection: str, *, replace: bool
    ) -> list[str]:
        name = check_id("collection", collection)
        drafts = draft_documents(documents, replace=replace)
        await embed_drafts(drafts, self._embedder, engine=Postgres.name)
        for at, draft in enumerate(drafts):
            if len(draft.vector) > MAX_DIMENSION:
                raise InvalidInputError(
                    f"documents[{at}].embedding",
                    f"has dimension {len(draft.vector)}: pgvector keeps up to {MAX_DIMENSION}",
                )
        if not drafts:
            return []
        ids = [draft.id for draft in drafts]
        await self._engine.fetch(
            _SQL["write"],
            *(self._tenant, name, replace, ids),
            *([draft.content for draft in drafts], [draft.metadata for draft in drafts]),
            [filterable(draft.metadata, tenant=self._tenant, collection=name) for draft in drafts],
            [len(draft.vector) for draft in drafts],
            [number for draft in drafts for number in draft.vector],
            # An upsert that ran already changes nothing when it runs again.
            safe=replace,
        )
        return ids


def _ranked(query: list[float], limit: int, rows: list[Any]) -> list[SearchResult]:
    """The best rows by their exact cosines: the database's, of 32 bits, only chose the rows."""
    if not rows:
        return []
    matrix = np.array([_numbers(row) for row in rows])
    scores = rounded_cosines(query, matrix).tolist()
    best = sorted(zip(scores, rows, strict=True), key=lambda one: (-one[0], one[1]["id"]))
    return [
        stored_result(row["id"], row["content"], row["metadata"], score)
        for score, row in best[:limit]
    ]


def _numbers(row: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    # As pgvector sends it: two numbers of 16 bits about it, then the floats, big end first.
    return np.frombuffer(row["embedding"], dtype=">f4", offset=4)
