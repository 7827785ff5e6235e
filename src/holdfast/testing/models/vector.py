"""A naive ``VectorStore``: a list of documents, every one of them looked at by every call."""

from __future__ import annotations

import copy
import math
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.documents import Document, SearchResult
from holdfast.values.errors import AlreadyExistsError, InvalidInputError


class NaiveVectors:
    """One row for each document; the state machine gives every document its embedding."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.tenant = tenant
        self.rows = shared.table("vectors")

    def _documents(self, collection: str) -> list[Document]:
        return [
            document
            for tenant, name, document in self.rows
            if (tenant, name) == (self.tenant, collection)
        ]

    def _check(self, documents: list[Document], collection: str) -> None:
        held = self._documents(collection)
        for document in documents:
            other = (held or documents)[0]
            if len(_vector(document)) != len(_vector(other)):
                raise InvalidInputError("documents", "another dimension")

    async def add(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        """Rows at the end, if no id is there yet."""
        ids = [document.id for document in self._documents(collection)]
        for document in documents:
            if document.id in ids:
                raise AlreadyExistsError("document", document.id)
            ids.append(document.id)
        self._check(documents, collection)
        for document in documents:
            self.rows.append((self.tenant, collection, copy.deepcopy(document)))
        return [document.id for document in documents]

    async def upsert(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        """The same, after the old rows are gone."""
        ids = [document.id for document in documents]
        if len(set(ids)) < len(ids):
            raise InvalidInputError("documents", "an id twice")
        self._check(documents, collection)
        await self.delete(ids, collection=collection)
        return await self.add(documents, collection=collection)

    async def search(
        self,
        query_embedding: list[float],
        *,
        collection: str = "default",
        limit: int = 5,
        filter: dict[str, Any] | None = None,
    ) -> list[SearchResult]:
        """All documents, sorted."""
        found = []
        for document in self._documents(collection):
            vector = _vector(document)
            if len(vector) != len(query_embedding):
                raise InvalidInputError("query_embedding", "another dimension")
            dot = sum(a * b for a, b in zip(vector, query_embedding, strict=True))
            score = round(dot / math.hypot(*vector) / math.hypot(*query_embedding), 9)
            if _passes(filter or {}, document.metadata):
                found.append(
                    SearchResult(
                        document.id,
                        copy.deepcopy(document.content),
                        score,
                        copy.deepcopy(document.metadata),
                    )
                )
        found.sort(key=lambda result: result.id)
        found.sort(key=lambda result: result.score, reverse=True)
        return found[:limit]

    async def get(self, ids: list[str], *, collection: str = "default") -> list[Document]:
        """The rows with these ids."""
        found: list[Document] = []
        for wanted in ids:
            for document in self._documents(collection):
                if document.id == wanted and document not in found:
                    found.append(document)
        return copy.deepcopy(found)

    async def delete(self, ids: list[str], *, collection: str = "default") -> int:
        """All rows but these."""
        before = len(self.rows)
        self.rows[:] = [
            row for row in self.rows if row[:2] != (self.tenant, collection) or row[2].id not in ids
        ]
        return before - len(self.rows)

    async def list_collections(self) -> list[str]:
        """The collections of all rows."""
        return sorted({name for tenant, name, _ in self.rows if tenant == self.tenant})

    async def delete_collection(self, collection: str) -> int:
        """All rows of a collection."""
        ids = [document.id for document in self._documents(collection)]
        return await self.delete(ids, collection=collection)


def _vector(document: Document) -> list[float]:
    assert document.embedding is not None
    return document.embedding


def _passes(filter: dict[str, Any], metadata: dict[str, Any]) -> bool:
    """What the filters of the state machine mean, and no more."""
    for key, wanted in filter.items():
        if key == "$or":
            if not any(_passes(part, metadata) for part in wanted):
                return False
        elif key == "$not":
            if _passes(wanted, metadata):
                return False
        elif isinstance(wanted, dict):
            bound = wanted["$gt"]
            value = metadata.get(key)
            if type(value) is not int or value <= bound:
                return False
        elif key not in metadata or repr(metadata[key]) != repr(wanted):
            return False
    return True
