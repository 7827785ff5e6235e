"""A LangChain vector store on ``state.vectors``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from holdfast.adapters.keys import id_of, text_of
from holdfast.blocking import Portal
from holdfast.values import documents as stored
from holdfast.values.errors import InvalidInputError
from holdfast.values.ids import new_id
from holdfast.wiring.state import State

Scored = list[tuple[Document, float]]


class HoldfastVectorStore(VectorStore):
    """A ``VectorStore`` on one collection, for every thread and event loop.

    ``state`` determines the engine, the tenant and the owner. A document that is added with the id
    of another replaces it. ``filter`` of the searches is Holdfast's filter over metadata. Scores
    are cosine similarities. ::

        store = HoldfastVectorStore(state, embeddings, collection="manuals")
        await store.aadd_texts(["low tide at noon"], [{"kind": "note"}], ids=["d1"])
        found = await store.asimilarity_search("tides", k=3, filter={"kind": "note"})
    """

    def __init__(
        self, state: State | Portal, embedding: Embeddings, *, collection: str = "langchain"
    ) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self._embedding = embedding
        self._collection = collection

    @property
    def embeddings(self) -> Embeddings:
        """The embedder."""
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_options: Any,
    ) -> list[str]:
        """Embed and store texts, all or none. Returns their ids; missing ids are generated."""
        listed = list(texts)
        vectors = self._embedding.embed_documents(listed) if listed else []
        return self._portal.run(self._add(_documents(listed, metadatas, ids, vectors)))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_options: Any,
    ) -> list[str]:
        """Embed and store texts, all or none. Returns their ids; missing ids are generated."""
        listed = list(texts)
        vectors = await self._embedding.aembed_documents(listed) if listed else []
        return await self._portal.arun(self._add(_documents(listed, metadatas, ids, vectors)))

    def delete(self, ids: list[str] | None = None, **_options: Any) -> bool:
        """Delete documents; without ``ids``, all documents of the collection."""
        return self._portal.run(self._delete(ids))

    async def adelete(self, ids: list[str] | None = None, **_options: Any) -> bool:
        """Delete documents; without ``ids``, all documents of the collection."""
        return await self._portal.arun(self._delete(ids))

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids; unknown ids are left out."""
        return self._portal.run(self._get(ids))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids; unknown ids are left out."""
        return await self._portal.arun(self._get(ids))

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """Return the documents closest to a text."""
        return _plain(self.similarity_search_with_score(query, k, **options))

    async def asimilarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """Return the documents closest to a text."""
        return _plain(await self.asimilarity_search_with_score(query, k, **options))

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: dict[str, Any] | None = None, **_options: Any
    ) -> Scored:
        """Return the documents closest to a text, each with its cosine similarity."""
        vector = self._embedding.embed_query(query)
        return self._portal.run(self._search(vector, k, filter))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: dict[str, Any] | None = None, **_options: Any
    ) -> Scored:
        """Return the documents closest to a text, each with its cosine similarity."""
        vector = await self._embedding.aembed_query(query)
        return await self._portal.arun(self._search(vector, k, filter))

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: dict[str, Any] | None = None,
        **_options: Any,
    ) -> list[Document]:
        """Return the documents closest to a vector."""
        return _plain(self._portal.run(self._search(embedding, k, filter)))

    async def asimilarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: dict[str, Any] | None = None,
        **_options: Any,
    ) -> list[Document]:
        """Return the documents closest to a vector."""
        return _plain(await self._portal.arun(self._search(embedding, k, filter)))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Any
    ) -> list[Document]:
        """Return documents that are close to a text and differ from each other."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(
            vector, k, fetch_k, lambda_mult, **options
        )

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Any
    ) -> list[Document]:
        """Return documents that are close to a text and differ from each other."""
        vector = await self._embedding.aembed_query(query)
        return await self.amax_marginal_relevance_search_by_vector(
            vector, k, fetch_k, lambda_mult, **options
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: dict[str, Any] | None = None,
        **_options: Any,
    ) -> list[Document]:
        """Return documents that are close to a vector and differ from each other."""
        return self._portal.run(self._diverse(embedding, k, fetch_k, lambda_mult, filter))

    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: dict[str, Any] | None = None,
        **_options: Any,
    ) -> list[Document]:
        """Return documents that are close to a vector and differ from each other."""
        return await self._portal.arun(self._diverse(embedding, k, fetch_k, lambda_mult, filter))

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        state: State | Portal | None = None,
        collection: str = "langchain",
        **_options: Any,
    ) -> Self:
        """Return a store on ``state`` with these texts added."""
        store = cls(_given(state), embedding, collection=collection)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        state: State | Portal | None = None,
        collection: str = "langchain",
        **_options: Any,
    ) -> Self:
        """Return a store on ``state`` with these texts added."""
        store = cls(_given(state), embedding, collection=collection)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        # A similarity below zero is of no relevance; the framework expects 0 to 1.
        return lambda score: max(0.0, score)

    async def _add(self, documents: list[stored.Document]) -> list[str]:
        last = {document.id: document for document in documents}
        await self._portal.state.vectors.upsert(list(last.values()), collection=self._collection)
        return [text_of(document.id) for document in documents]

    async def _delete(self, ids: list[str] | None) -> bool:
        vectors = self._portal.state.vectors
        if ids is None:
            await vectors.delete_collection(self._collection)
        else:
            await vectors.delete([id_of(one) for one in ids], collection=self._collection)
        return True

    async def _get(self, ids: Sequence[str]) -> list[Document]:
        wanted = [id_of(one) for one in ids]
        found = await self._portal.state.vectors.get(wanted, collection=self._collection)
        return [_document(one) for one in found]

    async def _search(self, vector: list[float], k: int, filter: dict[str, Any] | None) -> Scored:
        found = await self._portal.state.vectors.search(
            _floats(vector), collection=self._collection, limit=k, filter=filter
        )
        return [(_document(one), one.score) for one in found]

    async def _diverse(
        self, vector: list[float], k: int, fetch_k: int, weight: float, filter: Any
    ) -> list[Document]:
        near = await self._search(vector, max(k, fetch_k), filter)
        ids = [id_of(str(document.id)) for document, _ in near]
        found = await self._portal.state.vectors.get(ids, collection=self._collection)
        chosen = maximal_marginal_relevance(
            np.array(vector), [one.embedding or [] for one in found], weight, k
        )
        return [_document(found[at]) for at in chosen]


def _given(state: State | Portal | None) -> State | Portal:
    if state is None:
        raise InvalidInputError("state", "must be the State or the Portal to store the texts in")
    return state


def _floats(vector: Iterable[Any]) -> list[float]:
    return [float(one) for one in vector]


def _plain(found: Scored) -> list[Document]:
    return [document for document, _ in found]


def _documents(
    texts: list[str],
    metadatas: list[dict[str, Any]] | None,
    ids: Sequence[str | None] | None,
    vectors: Sequence[Iterable[Any]],
) -> list[stored.Document]:
    for field, listed in (("metadatas", metadatas), ("ids", ids), ("embedding", vectors)):
        if listed is not None and len(listed) != len(texts):
            raise InvalidInputError(
                field, f"has {len(listed)} entries for {len(texts)} texts: pass one for each"
            )
    return [
        stored.Document.from_text(
            text,
            id=id_of(given) if given is not None else new_id(),
            embedding=_floats(vector),
            metadata=metadata,
        )
        for text, metadata, given, vector in zip(
            texts, metadatas or [{}] * len(texts), ids or [None] * len(texts), vectors, strict=True
        )
    ]


def _document(one: stored.Document | stored.SearchResult) -> Document:
    return Document(id=text_of(one.id), page_content=one.text, metadata=one.metadata)
