"""Vectors in memory: exact search over a float32 matrix for each collection."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.document_draft import DocumentDraft, stored_document, stored_result
from holdfast.spi.vectors import Nearest, VectorStorage
from holdfast.values.checks import check_dimension
from holdfast.values.codec import decode_json
from holdfast.values.documents import Document
from holdfast.values.errors import AlreadyExistsError
from holdfast.values.filters import And, Filter, matches

Floats = npt.NDArray[np.float32]


@dataclass(slots=True)
class _Row:
    """A document. Content and metadata are JSON text, so that callers share no objects with it."""

    content: str
    metadata: str
    vector: list[float]
    subject: str = ""


class _View:
    """A collection as a matrix for search, built at the first search after a change."""

    def __init__(self, rows: dict[str, _Row]) -> None:
        # Sorted by id, so that a stable sort by score leaves ties in the order of ids.
        self.ids = sorted(rows)
        self.matrix: Floats = np.array([rows[key].vector for key in self.ids], dtype=np.float32)
        self.norms = np.linalg.norm(self.matrix.astype(np.float64), axis=1)
        self._rows = rows
        self._metadata: list[Any] | None = None

    def rank(self, query: list[float], limit: int, wanted: Filter) -> list[tuple[str, float]]:
        """Return the best ``limit`` ids that pass the filter, with their cosines."""
        chosen = self._passing(wanted)
        if limit == 0 or not len(chosen):
            return []
        asked = np.array(query, dtype=np.float64)
        asked /= np.linalg.norm(asked)
        if limit < len(chosen):
            # Preselect in 32 bits; the rounding error is far below the margin.
            rough = (self.matrix @ asked.astype(np.float32))[chosen] / self.norms[chosen]
            margin = len(query) * np.finfo(np.float32).eps
            least = np.partition(rough, -limit)[-limit] - margin
            chosen = chosen[rough >= least]
        cosines = self.matrix[chosen].astype(np.float64) @ asked / self.norms[chosen]
        # Round, so that vectors of the same direction tie at any length.
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


class InMemoryVectors(VectorStorage):
    """The vector collections of one tenant, in memory.

    >>> vectors = InMemoryVectors(InMemory(), tenant="acme")
    """

    name = InMemory.name
    max_dimension = sys.maxsize

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._data = engine.table(tenant, _Data)

    async def write(
        self, collection: str, drafts: Sequence[DocumentDraft], *, replace: bool
    ) -> None:
        """Store documents, all or none."""
        held = self._data.collections.get(collection)
        fixed = held.dimension if held else len(drafts[0].vector)
        for draft in drafts:
            if held and draft.id in held.rows and not replace:
                raise AlreadyExistsError("document", draft.id)
        for at, draft in enumerate(drafts):
            check_dimension(f"documents[{at}].embedding", draft.vector, fixed)
        held = self._data.collections.setdefault(collection, _Collection(fixed))
        held.view = None
        for draft in drafts:
            held.rows[draft.id] = _Row(
                *(draft.content, draft.metadata, draft.vector, draft.subject)
            )

    async def search(
        self, collection: str, query: list[float], limit: int, wanted: Filter
    ) -> Nearest:
        """Return the documents closest to a vector."""
        held = self._data.collections.get(collection)
        if held is None or held.dimension != len(query):
            return Nearest(held.dimension if held else None, [])
        if held.view is None:
            held.view = _View(held.rows)
        results = [
            stored_result(key, row.content, row.metadata, score, row.subject)
            for key, score in held.view.rank(query, limit, wanted)
            for row in [held.rows[key]]
        ]
        return Nearest(held.dimension, results)

    async def get(self, collection: str, ids: Sequence[str]) -> Sequence[Document]:
        """Return the documents with these ids that exist."""
        rows = self._rows(collection)
        return [
            stored_document(key, row.content, row.metadata, list(row.vector), row.subject)
            for key in ids
            if (row := rows.get(key)) is not None
        ]

    async def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Delete documents. Returns how many existed."""
        rows = self._rows(collection)
        gone = [key for key in ids if rows.pop(key, None) is not None]
        if gone:
            self._data.collections[collection].view = None
        if gone and not rows:
            del self._data.collections[collection]
        return len(gone)

    async def list_collections(self, prefix: str, hidden: str) -> list[str]:
        """Return the names of the collections."""
        return sorted(
            name
            for name in self._data.collections
            if name.startswith(prefix) and not (hidden and name.startswith(hidden))
        )

    async def delete_collection(self, collection: str) -> int:
        """Delete a collection. Returns how many documents it had."""
        gone = self._data.collections.pop(collection, None)
        return len(gone.rows) if gone else 0

    def _rows(self, collection: str) -> dict[str, _Row]:
        held = self._data.collections.get(collection)
        return held.rows if held else {}
