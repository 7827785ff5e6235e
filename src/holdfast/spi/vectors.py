"""Documents with vectors, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.spi.document_draft import DocumentDraft
from holdfast.values.documents import Document, SearchResult
from holdfast.values.filters import Filter


class Nearest(NamedTuple):
    """The documents found, and the dimension of the collection; ``None`` if it is empty."""

    dimension: int | None
    results: list[SearchResult]


class VectorStorage(Protocol):
    """The collections of one tenant. The caller checks all arguments; ids within a batch differ.

    The first document sets the dimension of a collection, until the collection is empty.
    """

    name: str
    """The engine's name in errors."""

    max_dimension: int
    """The highest dimension that a vector may have."""

    @abstractmethod
    async def write(
        self, collection: str, drafts: Sequence[DocumentDraft], *, replace: bool
    ) -> None:
        """Store documents that have their vectors, all or none.

        Unless ``replace``, raises ``AlreadyExistsError("document", id)`` if an id exists. Raises
        ``InvalidInputError("documents[N].embedding", …)`` if a vector has another dimension.
        """

    @abstractmethod
    async def search(
        self, collection: str, query: list[float], limit: int, wanted: Filter
    ) -> Nearest:
        """Return the documents closest to a vector that pass the filter, ties by id.

        If the collection has another dimension than the query, the caller ignores the results.
        """

    @abstractmethod
    async def get(self, collection: str, ids: Sequence[str]) -> Sequence[Document]:
        """Return those of the documents that exist, in any order."""

    @abstractmethod
    async def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Delete documents, and return how many there were."""

    @abstractmethod
    async def list_collections(self, prefix: str, hidden: str) -> list[str]:
        """Return the names of the collections that have documents, by code points.

        Only names that begin with ``prefix``, and not with ``hidden`` unless that is empty.
        """

    @abstractmethod
    async def delete_collection(self, collection: str) -> int:
        """Delete a collection, and return how many documents it had."""
