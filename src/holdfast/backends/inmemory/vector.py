"""Vectors in the process: exact search over a float32 matrix for each collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_count, check_id, check_ids, check_vector
from holdfast.kernel.core.codec import decode_json
from holdfast.kernel.core.errors import AlreadyExistsError
from holdfast.kernel.core.filters import And, Filter, matches, parse
from holdfast.kernel.storage.document_draft import (
    DocumentDraft,
    draft_documents,
    embed_drafts,
    stored_document,
    stored_result,
)
from holdfast.kernel.storage.embedding import Embedder
from holdfast.kernel.storage.vector import Document, SearchResult, VectorStore

Floats = npt.NDArray[np.float32]


@dataclass(slots=True)
class _Row:
    """A document: content and metadata as JSON text, so that nobody else holds the objects."""

    content: str
    metadata: str
    vector: list[float]


class _View:
    """A collection laid out for search: made at the first search after a change."""

    def __init__(self, rows: dict[str, _Row]) -> None:
        # In the order of ids, so that a stable sort by score leaves ties in it.
        self.ids = sorted(rows)
        self.matrix: Floats = np.array([rows[key].vector for key in self.ids], dtype=np.float32)
        self.norms = np.linalg.norm(self.matrix.astype(np.float64), axis=1)
        self._rows = rows
        self._metadata: list[Any] | None = None

    def rank(self, query: list[float], limit: int, wanted: Filter) -> list[tuple[str, float]]:
        """The best ``limit`` ids that pass the filter, with their cosines."""
        chosen = self._passing(wanted)
        if limit == 0 or not len(chosen):
            return []
        asked = np.array(query, dtype=np.float64)
        asked /= np.linalg.norm(asked)
        if limit < len(chosen):
            # A first look in 32 bits; its error is far below the margin that is kept.
            rough = (self.matrix @ asked.astype(np.float32))[chosen] / self.norms[chosen]
            margin = len(query) * np.finfo(np.float32).eps
            least = np.partition(rough, -limit)[-limit] - margin
            chosen = chosen[rough >= least]
        cosines = self.matrix[chosen].astype(np.float64) @ asked / self.norms[chosen]
        # Rounded, so that vectors of one direction tie whatever their length.
        scores = np.clip(np.round(cosines, 12), -1.0, 1.0) + 0.0
        best = np.argsort(-scores, kind="stable")[:limit]
        return [(self.ids[chosen[at]], float(scores[at])) for at in best]

    def _passing(self, wanted: Filter) -> npt.NDArray[np.intp]:
        if wanted == And(()):
            return np.arange(len(self.ids))
        if self._metadata is None:
            self._metadata = [decode_json(self._rows[key].metadata) for key in self.ids]
        return np.flatnonzero([matches(wanted, metadata) for metadata in self._metadata])


@dataclass(slots=True)
class _Collection:
    dimension: int
    rows: dict[str, _Row] = field(default_factory=dict)
    view: _View | None = field(default=None, repr=False)


@dataclass(slots=True)
class _Data:
    collections: dict[str, _Collection] = field(default_factory=dict)


class InMemoryVectors(VectorStore):
    """``VectorStore`` of the in-memory engine.

    >>> vectors = InMemoryVectors(InMemory(), tenant="acme")
    """

    def __init__(
        self, engine: InMemory, *, tenant: str = "default", embedder: Embedder | None = None
    ) -> None:
        self._data = engine.table(tenant, _Data)
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
        held = self._data.collections.get(check_id("collection", collection))
        dimension = held.dimension if held else None
        query = check_vector("query_embedding", query_embedding, dimension=dimension)
        limit = check_count("limit", limit)
        wanted = parse(filter)
        if held is None:
            return []
        if held.view is None:
            held.view = _View(held.rows)
        return [
            stored_result(key, held.rows[key].content, held.rows[key].metadata, score)
            for key, score in held.view.rank(query, limit, wanted)
        ]

    async def get(self, ids: list[str], *, collection: str = "default") -> list[Document]:
        """The documents with these ids, in this order; unknown ids are left out."""
        rows = self._rows(collection)
        return [
            stored_document(key, rows[key].content, rows[key].metadata, list(rows[key].vector))
            for key in dict.fromkeys(check_ids("ids", ids))
            if key in rows
        ]

    async def delete(self, ids: list[str], *, collection: str = "default") -> int:
        """Remove documents; how many there were."""
        rows = self._rows(collection)
        gone = [key for key in dict.fromkeys(check_ids("ids", ids)) if key in rows]
        for key in gone:
            del rows[key]
        if gone:
            self._data.collections[collection].view = None
        if gone and not rows:
            del self._data.collections[collection]
        return len(gone)

    async def list_collections(self) -> list[str]:
        """The names of the collections that have documents, in order."""
        return sorted(self._data.collections)

    async def delete_collection(self, collection: str) -> int:
        """Remove a collection with all its documents; how many there were."""
        gone = self._data.collections.pop(check_id("collection", collection), None)
        return len(gone.rows) if gone else 0

    def _rows(self, collection: str) -> dict[str, _Row]:
        held = self._data.collections.get(check_id("collection", collection))
        return held.rows if held else {}

    async def _write(
        self, documents: list[Document], collection: str, *, replace: bool
    ) -> list[str]:
        name = check_id("collection", collection)
        drafts = draft_documents(documents, replace=replace)
        if not replace:
            self._check_taken(name, drafts)
        await embed_drafts(drafts, self._embedder, engine=InMemory.name)
        # Again, since others wrote while the embedder worked; from here on nobody else runs.
        if not replace:
            self._check_taken(name, drafts)
        self._check_dimension(name, drafts)
        if drafts:
            held = self._data.collections.setdefault(name, _Collection(len(drafts[0].vector)))
            held.view = None
            for draft in drafts:
                held.rows[draft.id] = _Row(draft.content, draft.metadata, draft.vector)
        return [draft.id for draft in drafts]

    def _check_taken(self, name: str, drafts: Sequence[DocumentDraft]) -> None:
        rows = self._rows(name)
        for draft in drafts:
            if draft.id in rows:
                raise AlreadyExistsError("document", draft.id)

    def _check_dimension(self, name: str, drafts: Sequence[DocumentDraft]) -> None:
        held = self._data.collections.get(name)
        for at, draft in enumerate(drafts):
            fixed = held.dimension if held else len(drafts[0].vector)
            check_vector(f"documents[{at}].embedding", draft.vector, dimension=fixed)
