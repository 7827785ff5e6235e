from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.contracts.items import Items
from holdfast.engines.inmemory.items import InMemoryItems
from holdfast.spi.items import ItemSearch, ItemWrite, NamespaceQuery
from holdfast.values.errors import VersionConflictError
from holdfast.values.filters import And
from holdfast.values.items import Item, ItemHit, ItemKey, ItemPut, Namespace
from tests.mutants.registry import mutant


@mutant(
    "items",
    "test_a_put_with_another_expected_version_is_a_version_conflict_and_nothing_is_written",
    "test_of_many_writers_who_expect_the_same_version_one_wins",
)
class VersionsAreIgnored(InMemoryItems):
    """The last writer wins, whatever it expected."""

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        return await super().put(owner, [replace(write, expected=None) for write in writes])


@mutant("items", "test_all_puts_of_a_call_are_done_or_none")
class OneByOne(InMemoryItems):
    """A conflict leaves what was written before it."""

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        return [version for write in writes for version in await super().put(owner, [write])]


@mutant("items", "test_a_put_with_an_expected_version_that_is_repeated_is_a_version_conflict")
class ConflictsWithEqualItemsAreTaken(InMemoryItems):
    """A second creator with the same value is told that it was the first."""

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        try:
            return await super().put(owner, writes)
        except VersionConflictError as error:
            rows = [self._rows(owner).get(write.at) for write in writes]
            same = [
                row and row.value == write.value for row, write in zip(rows, writes, strict=True)
            ]
            if not all(same):
                raise
            return [error.actual]


@mutant("items", "test_an_overwrite_keeps_created_at_and_sets_updated_at")
class OverwritesAreNew(InMemoryItems):
    """An overwrite sets created_at."""

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        versions = await super().put(owner, writes)
        for write in writes:
            if row := self._rows(owner).get(write.at):
                row.created_at = row.updated_at
        return versions


@mutant(
    "items",
    "test_put_many_returns_the_versions_in_the_order_of_the_puts_and_zero_for_a_delete",
)
class VersionsInTheOrderOfKeys(Items):
    """Versions come in the order in which the items were locked."""

    async def put_many(self, puts: Sequence[ItemPut]) -> list[int]:
        return sorted(await super().put_many(puts))


@mutant("items", "test_get_many_starts_the_window_again_only_with_refresh")
class EveryReadRefreshes(InMemoryItems):
    """Reads keep items alive without being asked to."""

    async def get(
        self, owner: str, keys: Sequence[ItemKey], *, refresh: bool
    ) -> Sequence[Item | None]:
        return await super().get(owner, keys, refresh=refresh or True)


@mutant(
    "items",
    "test_search_starts_the_windows_of_the_items_that_it_returns_again_only_with_refresh",
)
class SearchRefreshesAllThatFit(InMemoryItems):
    """Items that are not on the page are kept alive too."""

    async def search(self, owner: str, search: ItemSearch) -> list[ItemHit]:
        if search.refresh:
            await super().search(owner, replace(search, limit=1 << 40, offset=0))
        return await super().search(owner, search)


@mutant("items", "test_an_item_expires_when_its_ttl_seconds_have_passed")
class NamespacesOfExpiredItemsAreListed(InMemoryItems):
    """A namespace stays until its items are swept."""

    async def list_namespaces(self, owner: str, query: NamespaceQuery) -> list[Namespace]:
        listed = {at.namespace for at in self._rows(owner)}
        return sorted(listed) or await super().list_namespaces(owner, query)


@mutant("items", "test_items_without_a_vector_come_after_those_with_one")
class OnlyItemsWithVectors(InMemoryItems):
    """A search by vector leaves out the items that have none."""

    async def search(self, owner: str, search: ItemSearch) -> list[ItemHit]:
        found = await super().search(owner, replace(search, limit=1 << 40, offset=0))
        kept = [hit for hit in found if search.vector is None or hit.score is not None]
        return kept[search.offset : search.offset + search.limit]


@mutant("items", "test_the_score_of_an_item_is_that_of_its_best_vector")
class TheFirstVectorCounts(InMemoryItems):
    """The score is that of the first vector."""

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        first = [replace(write, vectors=write.vectors[:1]) for write in writes]
        return await super().put(owner, first)


@mutant("items", "test_a_prefix_compares_whole_labels")
class PrefixesOfText(InMemoryItems):
    """The path is compared as one text."""

    async def search(self, owner: str, search: ItemSearch) -> list[ItemHit]:
        found = await super().search(owner, replace(search, prefix=(), limit=1 << 40, offset=0))
        begin = "/".join(search.prefix)
        kept = [hit for hit in found if "/".join(hit.item.namespace).startswith(begin)]
        return kept[search.offset : search.offset + search.limit]


@mutant(
    "items",
    "test_a_prefix_and_a_suffix_of_list_namespaces_compare_labels_and_none_is_any_label",
)
class SuffixesAreIgnored(Items):
    """Only the prefix is compared."""

    async def list_namespaces(self, **how: Any) -> list[Namespace]:
        if how.get("suffix") and all(how["suffix"]):
            how["suffix"] = ()
        return await super().list_namespaces(**how)


@mutant("items", "test_a_filter_of_a_search_looks_at_the_values")
class FiltersAreIgnored(InMemoryItems):
    """Every item passes."""

    async def search(self, owner: str, search: ItemSearch) -> list[ItemHit]:
        return await super().search(owner, replace(search, wanted=And(())))


@mutant("items", "test_an_item_has_the_subject_of_its_last_put")
class TheFirstSubjectOfAnItemStays(InMemoryItems):
    """A put that overwrites an item keeps whom it was about."""

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        rows = self._rows(owner)
        kept = [
            replace(one, subject=rows[one.at].subject)
            if one.value is not None and one.at in rows
            else one
            for one in writes
        ]
        return await super().put(owner, kept)


@mutant(
    "items",
    "test_a_subject_that_is_not_an_id_or_of_a_delete_is_refused_and_nothing_is_written",
)
class SubjectsOfDeletesAreIgnored(Items):
    """A delete may have a subject."""

    async def put_many(self, puts: Any) -> list[int]:
        return await super().put_many(
            [
                replace(one, subject="") if isinstance(one, ItemPut) and one.value is None else one
                for one in puts
            ]
            if isinstance(puts, list)
            else puts
        )
