"""Documents with vectors, as agents use them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.front import Front
from holdfast.spi.document_draft import draft_documents, embed_drafts
from holdfast.spi.embedding import Embedder
from holdfast.spi.vectors import VectorStorage
from holdfast.values.checks import check_count, check_ids, check_vector
from holdfast.values.documents import Document, SearchResult
from holdfast.values.errors import InvalidInputError
from holdfast.values.filters import parse


@runtime_checkable
class VectorStore(Protocol):
    """Documents in collections, found by the cosine similarity of their embeddings.

    A collection, and its dimension, exist as long as it has documents. Filters are described in
    ``holdfast.values.filters``.

    Promises:

    - a document comes back as it was added
    - add returns the ids in input order
    - a document without an id gets one
    - add of an existing id is refused and nothing is written
    - add of the same id twice in a batch is refused and nothing is written
    - upsert overwrites the whole document
    - upsert adds a document that is not there
    - upsert of the same id twice in a batch is refused and nothing is written
    - an empty batch does nothing
    - a batch with one bad document writes nothing
    - ids are per collection
    - search returns the closest first
    - the score is the cosine similarity
    - ties are ordered by id, by code points
    - a result has the content and the metadata of its document
    - a search limit of zero is an empty result
    - a search limit below zero is refused
    - a search returns all documents when there are fewer than the limit
    - nan, infinite and zero-norm vectors are refused
    - the dimension of a collection is fixed by its first vector
    - another dimension is an error that names both
    - a collection without documents forgets its dimension
    - embeddings are kept as 32-bit floats
    - a missing embedding is computed by the embedder from the text blocks
    - a missing embedding without an embedder is not supported, and the error says how to
      configure one
    - a missing embedding without any text is refused
    - an embedder that fails leaves nothing written
    - get returns the documents in the order asked, each once, without the unknown
    - an unknown collection is empty
    - delete returns the number of documents deleted
    - a deleted document is not found any more
    - delete_collection returns the number of documents
    - list_collections names the collections with documents, by code points
    - a filter of a key and a value asks for equality
    - a list in a filter means any of
    - several conditions in a filter must all hold
    - a filter distinguishes a missing key from a null
    - a filter distinguishes true from 1 and not 1 from a float
    - a filter orders numbers with numbers and text with text only
    - a filter orders text by code points
    - a filter on a list asks whether an element fits
    - a dotted path in a filter reaches a nested key
    - a dot or a dollar in a filter's key is escaped by a backslash
    - a negation in a filter holds exactly where its opposite does not
    - equals in a filter asks for the whole value
    - an empty list in a filter lets nothing through, and an empty and everything
    - a filter that cannot be read is refused by its path
    - a filtered search returns as many as asked whenever as many match
    - one collection never sees another's documents
    - one tenant never sees another's documents
    - concurrent adds of different documents are all kept
    - of concurrent adds of the same id one wins
    - a document has the subject that it was stored with, and an upsert replaces it
    - a subject that is not an id is refused and no document is stored
    - metadata comes back exactly as it went in
    - content of every kind comes back exactly as it went in
    - an id or a collection that is not an id is refused
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - documents are still there after a reopen
    """

    @abstractmethod
    async def add(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        """Store new documents, all or none. Raises ``AlreadyExistsError`` if an id is taken.

        ::

            [id] = await vectors.add([Document.from_text("low tide at noon")])
        """
        ...

    @abstractmethod
    async def search(
        self,
        query_embedding: list[float],
        *,
        collection: str = "default",
        limit: int = 5,
        filter: dict[str, Any] | None = None,
    ) -> list[SearchResult]:
        """Return the documents closest to a vector that pass the filter, the closest first.

        ::

            found = await vectors.search(vector, limit=3, filter={"kind": ["note", "mail"]})
        """
        ...

    @abstractmethod
    async def get(self, ids: list[str], *, collection: str = "default") -> list[Document]:
        """Return the documents with these ids, in this order; unknown ids are left out.

        ::

            [document] = await vectors.get(["d1"])
        """
        ...

    @abstractmethod
    async def upsert(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        """Store documents, all or none. An existing document is replaced as a whole.

        ::

            await vectors.upsert([Document.from_text("high tide at six", id="d1")])
        """
        ...

    @abstractmethod
    async def delete(self, ids: list[str], *, collection: str = "default") -> int:
        """Delete documents. Returns how many there were.

        ::

            assert await vectors.delete(["d1"]) == 1
        """
        ...

    @abstractmethod
    async def list_collections(self) -> list[str]:
        """Return the names of the collections that have documents, in order.

        ::

            names = await vectors.list_collections()
        """
        ...

    @abstractmethod
    async def delete_collection(self, collection: str) -> int:
        """Delete a collection with all its documents. Returns how many there were.

        ::

            await vectors.delete_collection("drafts")
        """
        ...


class Vectors(Front, VectorStore):
    """Implements ``VectorStore``: checks the arguments, then calls the engine's storage.

    ::

        vectors = Vectors(PostgresVectors(engine, tenant="acme"), embedder=embedder)
    """

    def __init__(self, storage: VectorStorage, *, embedder: Embedder | None = None) -> None:
        self._storage = storage
        self._embedder = embedder

    async def add(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        """Store new documents, all or none. Raises ``AlreadyExistsError`` if an id is taken."""
        return await self._write(documents, collection, replace=False)

    async def upsert(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        """Store documents, all or none. An existing document is replaced as a whole."""
        return await self._write(documents, collection, replace=True)

    async def search(
        self,
        query_embedding: list[float],
        *,
        collection: str = "default",
        limit: int = 5,
        filter: dict[str, Any] | None = None,
    ) -> list[SearchResult]:
        """Return the documents closest to a vector that pass the filter, the closest first."""
        name = self._scope.known("collection", collection)
        query = check_vector("query_embedding", query_embedding)
        wanted = self._limits.check_filter("filter", parse(filter))
        found = await self._storage.search(name, query, check_count("limit", limit), wanted)
        if found.dimension is not None:
            check_vector("query_embedding", query, dimension=found.dimension)
        return found.results

    async def get(self, ids: list[str], *, collection: str = "default") -> list[Document]:
        """Return the documents with these ids, in this order; unknown ids are left out."""
        name = self._scope.known("collection", collection)
        wanted = list(dict.fromkeys(check_ids("ids", ids)))
        found = await self._storage.get(name, wanted) if wanted else []
        by_id = {document.id: document for document in found}
        return [by_id[key] for key in wanted if key in by_id]

    async def delete(self, ids: list[str], *, collection: str = "default") -> int:
        """Delete documents. Returns how many there were."""
        name = self._scope.known("collection", collection)
        wanted = list(dict.fromkeys(check_ids("ids", ids)))
        return await self._storage.delete(name, wanted) if wanted else 0

    async def list_collections(self) -> list[str]:
        """Return the names of the collections that have documents, in order."""
        found = await self._storage.list_collections(*self._scope.names())
        return [self._scope.own(name) for name in found]

    async def delete_collection(self, collection: str) -> int:
        """Delete a collection with all its documents. Returns how many there were."""
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
                    f"has dimension {len(draft.vector)}: {self._storage.name} stores up to {most}",
                )
        if drafts:
            await self._storage.write(name, drafts, replace=replace)
        return [draft.id for draft in drafts]
