from __future__ import annotations

from typing import Any

from holdfast.backends.inmemory.vector import InMemoryVectors
from holdfast.kernel.core.checks import check_count
from holdfast.kernel.core.codec import decode_json, encode_json
from holdfast.kernel.core.errors import AlreadyExistsError
from holdfast.kernel.core.filters import Compare, Exists, Filter, Not, OneOf, matches, parse
from holdfast.kernel.storage.vector import Document, SearchResult
from tests.mutants.registry import mutant


class _Filtering(InMemoryVectors):
    """Searches all, then filters by its own ``passes``."""

    def passes(self, wanted: Filter, metadata: dict[str, Any]) -> bool:
        return matches(wanted, metadata)

    async def search(
        self,
        query_embedding: list[float],
        *,
        collection: str = "default",
        limit: int = 5,
        filter: dict[str, Any] | None = None,
    ) -> list[SearchResult]:
        check_count("limit", limit)
        wanted = parse(filter)
        everything = await super().search(query_embedding, collection=collection, limit=10**9)
        found = [result for result in everything if self.passes(wanted, result.metadata)]
        return found[:limit]


@mutant("vectors", "test_a_filter_tells_a_missing_key_from_a_null")
class MissingIsNull(_Filtering):
    """A filter reads a missing key as null."""

    def passes(self, wanted: Filter, metadata: dict[str, Any]) -> bool:
        if wanted == OneOf(("k",), (None,)) and "k" not in metadata:
            return True
        return matches(wanted, metadata)


@mutant("vectors", "test_a_filter_tells_true_from_1_and_not_1_from_a_float")
class TrueIsOne(_Filtering):
    """A filter compares as Python does, where True is 1."""

    def passes(self, wanted: Filter, metadata: dict[str, Any]) -> bool:
        if isinstance(wanted, OneOf) and metadata.get("k") is True:
            return metadata["k"] in wanted.values
        return matches(wanted, metadata)


@mutant("vectors", "test_a_negation_in_a_filter_holds_exactly_where_its_opposite_does_not")
class NegationNeedsTheKey(_Filtering):
    """A negation is as in SQL: it does not hold for what is missing."""

    def passes(self, wanted: Filter, metadata: dict[str, Any]) -> bool:
        match wanted:
            case Not(OneOf(path, values) | Compare(path, _, values)) if values not in ((), (None,)):
                return matches(wanted, metadata) and matches(Exists(path), metadata)
            case _:
                return matches(wanted, metadata)


@mutant("vectors", "test_a_filtered_search_returns_as_many_as_asked_whenever_as_many_match")
class FiltersTheNearest(_Filtering):
    """A filter is applied to the 200 nearest only."""

    async def search(
        self,
        query_embedding: list[float],
        *,
        collection: str = "default",
        limit: int = 5,
        filter: dict[str, Any] | None = None,
    ) -> list[SearchResult]:
        near = await InMemoryVectors.search(self, query_embedding, collection=collection, limit=200)
        found = await super().search(
            query_embedding, collection=collection, limit=limit, filter=filter
        )
        return [result for result in found if result in near]


@mutant("vectors", "test_add_of_an_existing_id_is_refused_and_nothing_is_written")
class AddWritesUpToTheTakenId(InMemoryVectors):
    """Add stores the documents before the one whose id is taken."""

    async def add(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        try:
            return await super().add(documents, collection=collection)
        except AlreadyExistsError as error:
            ids = [document.id for document in documents]
            if len(set(ids)) == len(ids) > 1:
                await super().add(documents[: ids.index(error.key)], collection=collection)
            raise


@mutant("vectors", "test_ties_are_ordered_by_id_by_code_points")
class TiesByAge(InMemoryVectors):
    """Ties stay in the order of their arrival."""

    async def search(
        self,
        query_embedding: list[float],
        *,
        collection: str = "default",
        limit: int = 5,
        filter: dict[str, Any] | None = None,
    ) -> list[SearchResult]:
        found = await super().search(
            query_embedding, collection=collection, limit=limit, filter=filter
        )
        ages = list(self._rows(collection))
        return sorted(found, key=lambda result: (-result.score, ages.index(result.id)))


@mutant("vectors", "test_of_concurrent_adds_of_the_same_id_one_wins")
class LooksOnlyBeforeEmbedding(InMemoryVectors):
    """Whether an id is taken is asked before the embedder works, and not after."""

    async def add(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        if self._embedder is None or len(documents) > 1:
            return await super().add(documents, collection=collection)
        if documents[0].id in self._rows(collection):
            raise AlreadyExistsError("document", documents[0].id)
        return await super().upsert(documents, collection=collection)


@mutant("vectors", "test_upsert_overwrites_the_whole_document")
class UpsertMergesMetadata(InMemoryVectors):
    """Upsert keeps the metadata keys that the new document does not have."""

    async def upsert(self, documents: list[Document], *, collection: str = "default") -> list[str]:
        rows = dict(self._rows(collection))
        ids = await super().upsert(documents, collection=collection)
        for key in ids:
            if key in rows:
                row = self._rows(collection)[key]
                merged = decode_json(rows[key].metadata) | decode_json(row.metadata)
                row.metadata = encode_json(merged)
        return ids


@mutant("vectors", "test_a_deleted_document_is_not_found_any_more")
class SearchesTheOldMatrix(InMemoryVectors):
    """A delete leaves the document in what search looks at."""

    async def delete(self, ids: list[str], *, collection: str = "default") -> int:
        held = self._data.collections.get(collection)
        view = held.view if held else None
        gone = await super().delete(ids, collection=collection)
        if held:
            held.view = view
        return gone
