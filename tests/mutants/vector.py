from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.contracts.vectors import Vectors
from holdfast.engines.inmemory.vector import InMemoryVectors
from holdfast.spi.document_draft import DocumentDraft
from holdfast.spi.vectors import Nearest
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.documents import Document
from holdfast.values.errors import AlreadyExistsError
from holdfast.values.filters import And, Compare, Exists, Filter, Not, OneOf, matches
from tests.mutants.registry import mutant

EVERYTHING = 10**9


class _Filtering(InMemoryVectors):
    """Searches all, then filters by its own ``passes``."""

    def passes(self, wanted: Filter, metadata: dict[str, Any]) -> bool:
        return matches(wanted, metadata)

    async def search(
        self, collection: str, query: list[float], limit: int, wanted: Filter
    ) -> Nearest:
        near = await super().search(collection, query, EVERYTHING, And(()))
        found = [result for result in near.results if self.passes(wanted, result.metadata)]
        return Nearest(near.dimension, found[:limit])


@mutant("vectors", "test_a_filter_distinguishes_a_missing_key_from_a_null")
class MissingIsNull(_Filtering):
    """A filter reads a missing key as null."""

    def passes(self, wanted: Filter, metadata: dict[str, Any]) -> bool:
        if wanted == OneOf(("k",), (None,)) and "k" not in metadata:
            return True
        return matches(wanted, metadata)


@mutant("vectors", "test_a_filter_distinguishes_true_from_1_and_not_1_from_a_float")
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
        self, collection: str, query: list[float], limit: int, wanted: Filter
    ) -> Nearest:
        near = await InMemoryVectors.search(self, collection, query, 200, And(()))
        found = await super().search(collection, query, limit, wanted)
        return Nearest(near.dimension, [one for one in found.results if one in near.results])


@mutant("vectors", "test_add_of_an_existing_id_is_refused_and_nothing_is_written")
class AddWritesUpToTheTakenId(Vectors):
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
        self, collection: str, query: list[float], limit: int, wanted: Filter
    ) -> Nearest:
        found = await super().search(collection, query, limit, wanted)
        ages = list(self._rows(collection))
        by_age = sorted(found.results, key=lambda one: (-one.score, ages.index(one.id)))
        return Nearest(found.dimension, by_age)


@mutant("vectors", "test_of_concurrent_adds_of_the_same_id_one_wins")
class LooksTooEarly(InMemoryVectors):
    """Whether an id is taken is asked a moment before it is written."""

    async def write(
        self, collection: str, drafts: Sequence[DocumentDraft], *, replace: bool
    ) -> None:
        if not replace and len(drafts) == 1:
            if drafts[0].id in self._rows(collection):
                raise AlreadyExistsError("document", drafts[0].id)
            await asyncio.sleep(0)
            replace = True
        await super().write(collection, drafts, replace=replace)


@mutant("vectors", "test_upsert_overwrites_the_whole_document")
class UpsertMergesMetadata(InMemoryVectors):
    """Upsert keeps the metadata keys that the new document does not have."""

    async def write(
        self, collection: str, drafts: Sequence[DocumentDraft], *, replace: bool
    ) -> None:
        before = dict(self._rows(collection))
        await super().write(collection, drafts, replace=replace)
        for draft in drafts:
            if draft.id in before:
                row = self._rows(collection)[draft.id]
                merged = decode_json(before[draft.id].metadata) | decode_json(row.metadata)
                row.metadata = encode_json(merged)


@mutant("vectors", "test_a_deleted_document_is_not_found_any_more")
class SearchesTheOldMatrix(InMemoryVectors):
    """A delete leaves the document in what search looks at."""

    async def delete(self, collection: str, ids: Sequence[str]) -> int:
        held = self._data.collections.get(collection)
        view = held.view if held else None
        gone = await super().delete(collection, ids)
        if held:
            held.view = view
        return gone


@mutant(
    "vectors",
    "test_a_document_has_the_subject_that_it_was_stored_with_and_an_upsert_replaces_it",
)
class AnUpsertKeepsTheOldSubject(InMemoryVectors):
    """A document that is replaced stays about the same person."""

    async def write(
        self, collection: str, drafts: Sequence[DocumentDraft], *, replace: bool
    ) -> None:
        held = {row.id: row.subject for row in await self.get(collection, [d.id for d in drafts])}
        for draft in drafts:
            draft.subject = held.get(draft.id, draft.subject)
        await super().write(collection, drafts, replace=replace)
