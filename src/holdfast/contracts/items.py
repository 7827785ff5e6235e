"""JSON objects under a namespace and a key, as agents and frameworks use them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.front import Front
from holdfast.contracts.item_checks import (
    check_keys,
    check_pattern,
    check_prefix,
    check_puts,
)
from holdfast.spi.items import ItemSearch, ItemStorage, NamespaceQuery
from holdfast.values.checks import check_count, check_flag, check_optional_count, check_vector
from holdfast.values.errors import InvalidInputError
from holdfast.values.filters import parse
from holdfast.values.items import Item, ItemHit, ItemKey, ItemPut, Namespace


@runtime_checkable
class ItemStore(Protocol):
    """JSON objects, each under the path of a namespace and a key.

    A namespace is a path of labels, such as ``("users", "ana")``. It exists as long as it has
    items. An item may have vectors, and may expire. Versions are opaque: compare them, do not count
    with them. A put without ``expected_version`` overwrites, so it can be retried. A retry of a put
    with ``expected_version`` raises ``VersionConflictError`` if the first try was stored: read the
    item to see whether that or another writer changed it. Filters are described in
    ``holdfast.values.filters``.

    Promises:

    - an item comes back as it was put
    - an unknown item is none
    - get_many returns items in the order of the keys
    - a value comes back exactly as it went in
    - a put replaces the whole item
    - an overwrite keeps created_at and sets updated_at
    - a value of none deletes the item
    - deleting an item that is not there does nothing
    - put_many returns the versions in the order of the puts, and zero for a delete
    - each put gives a higher version
    - a version is never used again after a delete
    - all puts of a call are done or none
    - the same item twice in a call is refused and nothing is written
    - a put with the expected version is done
    - a put with another expected version is a version conflict and nothing is written
    - an expected version of zero means that there must be no item yet
    - a delete has an expected version too
    - a put with an expected version that is repeated is a version conflict
    - of many writers who expect the same version one wins
    - a negative expected version is refused
    - a put that is repeated leaves the same item
    - concurrent calls with the same items are each done as a whole
    - an empty call does nothing
    - a call with too many items is refused
    - a namespace without a label is refused
    - a namespace that is too deep or too long is refused
    - a key or a label that is not an id is refused
    - a value that is not a json object is refused by its path and nothing is written
    - vectors and ttl_seconds of a delete are refused
    - an item has the subject of its last put
    - a subject that is not an id, or of a delete, is refused and nothing is written
    - an item without ttl_seconds never expires
    - an item expires when its ttl_seconds have passed
    - a put starts the window again, and one without ttl_seconds ends it
    - get_many starts the window again only with refresh
    - search starts the windows of the items that it returns again only with refresh
    - an item put after expiry has nothing of the old one
    - a ttl_seconds of zero or less is refused
    - search finds the items of a namespace and of those below it
    - a prefix compares whole labels
    - without a vector search returns the item that was put last first
    - with a vector search returns the closest first
    - the score of an item is that of its best vector
    - of items with the same score the one that was put last comes first
    - items without a vector come after those with one
    - a vector of another dimension counts as none
    - a put replaces the vectors of the item
    - nan, infinite and zero-norm vectors are refused
    - a filter of a search looks at the values
    - a filter of a search that cannot be read is refused by its path
    - limit and offset select a page of a search
    - a limit of zero is an empty result
    - list_namespaces lists the namespaces that have items, by code points
    - a prefix and a suffix of list_namespaces compare labels, and none is any label
    - max_depth cuts the namespaces and lists each once
    - a max_depth of zero is refused
    - limit and offset select a page of the namespaces
    - one namespace never sees another's items
    - one tenant never sees another's items
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - items are still there after a reopen
    """

    @abstractmethod
    async def get_many(
        self, keys: Sequence[ItemKey], *, refresh: bool = False
    ) -> list[Item | None]:
        """Return the items with these keys, in order; ``None`` where there is no item.

        ``refresh`` starts their ``ttl_seconds`` again.

        ::

            [profile] = await items.get_many([ItemKey(("users", "ana"), "profile")])
        """
        ...

    @abstractmethod
    async def put_many(self, puts: Sequence[ItemPut]) -> list[int]:
        """Store and delete items, all or none. Returns their new versions; 0 if deleted.

        Raises ``VersionConflictError`` if an item does not have its ``expected_version``. ::

            await items.put_many([ItemPut(("users", "ana"), "profile", {"city": "Riga"})])
        """
        ...

    @abstractmethod
    async def search(
        self,
        prefix: Namespace,
        *,
        filter: dict[str, Any] | None = None,
        vector: list[float] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[ItemHit]:
        """Return the items of a namespace and of those below it; ``()`` means all namespaces.

        With a vector the closest come first, without one the items that were put last. ::

            hits = await items.search(("users", "ana"), filter={"kind": "note"}, limit=3)
        """
        ...

    @abstractmethod
    async def list_namespaces(
        self,
        *,
        prefix: Sequence[str | None] = (),
        suffix: Sequence[str | None] = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """Return the namespaces that have items, in order.

        ``None`` in ``prefix`` or ``suffix`` matches any label.

        ::

            users = await items.list_namespaces(prefix=("users", None), max_depth=2)
        """
        ...


class Items(Front, ItemStore):
    """Implements ``ItemStore``: checks the arguments, then calls the engine's storage.

    ::

        items = Items(PostgresItems(engine, tenant="acme"))
    """

    def __init__(self, storage: ItemStorage) -> None:
        self._storage = storage

    async def get_many(
        self, keys: Sequence[ItemKey], *, refresh: bool = False
    ) -> list[Item | None]:
        """Return the items with these keys."""
        checked = check_keys(keys)
        wanted = list(dict.fromkeys(checked))
        if not wanted:
            return []
        found = await self._storage.get(
            self._scope.owner, wanted, refresh=check_flag("refresh", refresh)
        )
        by_key = dict(zip(wanted, found, strict=True))
        return [by_key[key] for key in checked]

    async def put_many(self, puts: Sequence[ItemPut]) -> list[int]:
        """Store and delete items, all or none."""
        writes = check_puts(
            puts,
            limits=self._limits,
            engine=self._storage.name,
            most=self._storage.max_dimension,
        )
        if not writes:
            return []
        ordered = sorted(writes, key=lambda write: write.at)
        versions = await self._storage.put(self._scope.owner, ordered)
        by_key = {write.at: version for write, version in zip(ordered, versions, strict=True)}
        return [by_key[write.at] for write in writes]

    async def search(
        self,
        prefix: Namespace,
        *,
        filter: dict[str, Any] | None = None,
        vector: list[float] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[ItemHit]:
        """Return the items of a namespace and of those below it."""
        search = ItemSearch(
            check_prefix("prefix", prefix),
            self._limits.check_filter("filter", parse(filter)),
            None if vector is None else check_vector("vector", vector),
            check_count("limit", limit),
            check_count("offset", offset),
            check_flag("refresh", refresh),
        )
        return await self._storage.search(self._scope.owner, search) if limit else []

    async def list_namespaces(
        self,
        *,
        prefix: Sequence[str | None] = (),
        suffix: Sequence[str | None] = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """Return the namespaces that have items."""
        if check_optional_count("max_depth", max_depth) == 0:
            raise InvalidInputError("max_depth", "must be 1 or more")
        query = NamespaceQuery(
            check_pattern("prefix", prefix),
            check_pattern("suffix", suffix),
            max_depth,
            check_count("limit", limit),
            check_count("offset", offset),
        )
        return await self._storage.list_namespaces(self._scope.owner, query) if limit else []
