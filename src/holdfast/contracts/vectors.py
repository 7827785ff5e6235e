"""Documents with vectors, as agents use them."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.front import Front
from holdfast.kernel.storage.document_draft import draft_documents, embed_drafts
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.vector import Document, SearchResult, VectorStore
from holdfast.spi.vectors import VectorStorage
from holdfast.values.checks import check_count, check_ids, check_vector
from holdfast.values.errors import InvalidInputError
from holdfast.values.filters import parse


class Vectors(Front, VectorStore):
    """``VectorStore`` on any engine.

    ::

        vectors = Vectors(PostgresVectors(engine, tenant="acme"), embedder=embedder)
    """

    def __init__(self, storage: VectorStorage, *, embedder: Embedder | None = None) -> None:
        self._storage = storage
        self._embedder = embedder

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
        name = self._scope.known("collection", collection)
        query = check_vector("query_embedding", query_embedding)
        wanted = self._limits.check_filter("filter", parse(filter))
        found = await self._storage.search(name, query, check_count("limit", limit), wanted)
        if found.dimension is not None:
            check_vector("query_embedding", query, dimension=found.dimension)
        return found.results

    async def get(self, ids: list[str], *, collection: str = "default") -> list[Document]:
        """The documents with these ids, in this order; unknown ids are left out."""
        name = self._scope.known("collection", collection)
        wanted = list(dict.fromkeys(check_ids("ids", ids)))
        found = await self._storage.get(name, wanted) if wanted else []
        by_id = {document.id: document for document in found}
        return [by_id[key] for key in wanted if key in by_id]

    async def delete(self, ids: list[str], *, collection: str = "default") -> int:
        """Remove documents; how many there were."""
        name = self._scope.known("collection", collection)
        wanted = list(dict.fromkeys(check_ids("ids", ids)))
        return await self._storage.delete(name, wanted) if wanted else 0

    async def list_collections(self) -> list[str]:
        """The names of the collections that have documents, in order."""
        found = await self._storage.list_collections(*self._scope.names())
        return [self._scope.own(name) for name in found]

    async def delete_collection(self, collection: str) -> int:
        """Remove a collection with all its documents; how many there were."""
        return await self._storage.delete_collection(self._scope.known("collection", collection))

    async def _write(
        self, documents: list[Document], collection: str, *, replace: bool
    ) -> list[str]:
        name = self._scope.known("collection", collection)
        drafts = draft_documents(documents, replace=replace)
        for at, draft in enumerate(drafts):
            self._limits.check_value(f"documents[{at}]", draft.content, draft.metadata)
        await embed_drafts(drafts, self._embedder, engine=self._storage.name)
        most = self._storage.max_dimension
        for at, draft in enumerate(drafts):
            if len(draft.vector) > most:
                raise InvalidInputError(
                    f"documents[{at}].embedding",
                    f"has dimension {len(draft.vector)}: {self._storage.name} keeps up to {most}",
                )
        if drafts:
            await self._storage.write(name, drafts, replace=replace)
        return [draft.id for draft in drafts]
