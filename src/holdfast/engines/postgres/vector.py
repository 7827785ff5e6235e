"""Vectors on pgvector: exact search in small collections, through an index in large ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

import numpy as np

from holdfast.engines.cosine import rounded_cosines
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.filter_sql import FilterSql, filterable, held
from holdfast.engines.postgres.indexes import Near
from holdfast.engines.postgres.packed_vectors import unpack
from holdfast.engines.postgres.queries import filled, load
from holdfast.spi.document_draft import DocumentDraft, stored_document, stored_result
from holdfast.spi.vectors import Nearest, VectorStorage
from holdfast.values.documents import Document, SearchResult
from holdfast.values.filters import Filter

MAX_DIMENSION = 16_000
"""The maximal dimension of a vector in pgvector."""

_SQL = load("vector")
_SEARCH_PARAMETERS = 7
HELD: LiteralString = (
    "AND d.id = ANY (ARRAY(SELECT holdfast.documents_holding($1, $2, $n::text[])))"
)
"""SQL that finds candidates by the index on metadata; ``$n`` is what their metadata contains."""
_EPSILON = float(np.finfo(np.float32).eps)
_MOST = 1 << 40


class PostgresVectors(VectorStorage):
    """The vector collections of one tenant, on pgvector.

    ::

        vectors = PostgresVectors(engine, tenant="acme")
    """

    name = Postgres.name
    max_dimension = MAX_DIMENSION

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant
        # Collections that were found to have an index: their searches try the index first.
        self._indexed: set[str] = set()

    async def write(
        self, collection: str, drafts: Sequence[DocumentDraft], *, replace: bool
    ) -> None:
        """Store documents, all or none."""
        where = {"tenant": self._tenant, "collection": collection}
        await self._engine.fetch(
            _SQL["write"],
            *(self._tenant, collection, replace, [draft.id for draft in drafts]),
            *([draft.content for draft in drafts], [draft.metadata for draft in drafts]),
            [filterable(draft.metadata, **where) for draft in drafts],
            [len(draft.vector) for draft in drafts],
            [number for draft in drafts for number in draft.vector],
            [draft.subject for draft in drafts],
            # An upsert is idempotent.
            safe=replace,
        )

    async def search(
        self, collection: str, query: list[float], limit: int, wanted: Filter
    ) -> Nearest:
        """Return the documents closest to a vector."""
        limit, indexed = min(limit, _MOST), collection in self._indexed
        rows = await self._search(collection, query, limit, wanted, indexed=indexed)
        if not rows or rows[0]["dimension"] != len(query):
            return Nearest(rows[0]["dimension"] if rows else None, [])
        if rows[0]["indexed"] and not indexed:
            self._indexed.add(collection)
            rows = await self._search(collection, query, limit, wanted, indexed=True)
        elif not rows[0]["indexed"]:
            self._indexed.discard(collection)
        found = [row for row in rows if row["id"] is not None]
        return Nearest(len(query), _ranked(query, limit, found))

    async def get(self, collection: str, ids: Sequence[str]) -> Sequence[Document]:
        """Return the documents with these ids that exist."""
        rows = await self._engine.fetch(_SQL["get"], self._tenant, collection, ids, safe=True)
        return [
            stored_document(
                *(row["id"], row["content"], row["metadata"], _numbers(row).tolist()),
                row["subject"],
            )
            for row in rows
        ]

    async def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Delete documents. Returns how many existed."""
        args = (self._tenant, collection, ids)
        return int(await self._engine.fetchval(_SQL["delete"], *args, safe=False))

    async def list_collections(self, prefix: str, hidden: str) -> list[str]:
        """Return the names of the collections."""
        args = (self._tenant, prefix, hidden)
        rows = await self._engine.fetch(_SQL["list_collections"], *args, safe=True)
        return [row["name"] for row in rows]

    async def delete_collection(self, collection: str) -> int:
        """Delete a collection. Returns how many documents it had."""
        args = (self._tenant, collection)
        return int(await self._engine.fetchval(_SQL["delete_collection"], *args, safe=False))

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
            # Below a policy a filter does not use the index on the metadata: this looks it up.
            texts = held(wanted, tenant=self._tenant, collection=name)
            parts["/* scope */ = TRUE"] = filled(HELD, {"$n": condition.more(texts)})
        if indexed:
            near = Near.of(len(query))
            parts |= {
                "/* planned */ TRUE": compiled(planned=True).condition,
                "/* dimension */ 2": str(len(query)),
                "/* near */ embedding": near.embedding,
                "/* query */ (SELECT $3::real[]::public.vector)": near.query,
            }
        return await self._engine.search(
            filled(_SQL["search_indexed"] if indexed else _SQL["search"], parts),
            *(self._tenant, name, query, len(query)),
            *(limit, 2 * limit + 16 if limit else 0, len(query) * _EPSILON),
            *condition.parameters,
        )


def _ranked(query: list[float], limit: int, rows: list[Any]) -> list[SearchResult]:
    """Return the best rows by exact cosine; the database chose the rows by 32-bit cosines."""
    if not rows:
        return []
    matrix = np.array([_numbers(row) for row in rows])
    scores = rounded_cosines(query, matrix).tolist()
    best = sorted(zip(scores, rows, strict=True), key=lambda one: (-one[0], one[1]["id"]))
    return [
        stored_result(row["id"], row["content"], row["metadata"], score, row["subject"])
        for score, row in best[:limit]
    ]


def _numbers(row: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    return unpack(row["embedding"])
