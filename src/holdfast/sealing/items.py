"""Encrypted items: values are encrypted, and filtered by keyed digests of their fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Opener, Seal
from holdfast.spi.items import ItemSearch, ItemStorage, ItemWrite, NamespaceQuery
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.items import Item, ItemHit, ItemKey, Namespace


class SealedItems(ItemStorage):
    """Encrypts the values that an ``ItemStorage`` stores.

    ::

        items = SealedItems(PostgresItems(engine), sealing)
    """

    def __init__(self, inner: ItemStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal
        self.name = inner.name
        self.max_dimension = inner.max_dimension

    async def get(
        self, owner: str, keys: Sequence[ItemKey], *, refresh: bool
    ) -> Sequence[Item | None]:
        """Return items in the order of their keys."""
        found = await self._inner.get(owner, keys, refresh=refresh)
        opener = await self._seal.opener(*(one.value for one in found if one is not None))
        if opener.is_plain:
            return found
        return [one and _opened(opener, owner, one) for one in found]

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        """Store and delete items."""
        for one in writes:
            self._seal.check("value", one.value or "")
            self._seal.check_vectors(one.vectors)
        return await self._inner.put(owner, [await self._sealed(owner, one) for one in writes])

    async def _sealed(self, owner: str, write: ItemWrite) -> ItemWrite:
        sealer = await self._seal.sealer_about(owner, write.subject or owner)
        blind = await self._seal.blind()
        if write.value is None or sealer is None or blind is None:
            return write
        fields = blind.fields(decode_json(write.value))
        return dataclasses.replace(write, value=sealer.json(_place(write.at), write.value, fields))

    async def search(self, owner: str, search: ItemSearch) -> list[ItemHit]:
        """Return items by their best vector, or by version."""
        self._seal.check_vectors(search.vector)
        blind = await self._seal.blind()
        if blind is not None:
            wanted = blind.filter(search.wanted, whole=False)
            search = dataclasses.replace(search, wanted=wanted)
        found = await self._inner.search(owner, search)
        opener = await self._seal.opener(*(hit.item.value for hit in found))
        if opener.is_plain:
            return found
        return [dataclasses.replace(hit, item=_opened(opener, owner, hit.item)) for hit in found]

    async def list_namespaces(self, owner: str, query: NamespaceQuery) -> list[Namespace]:
        """Return the namespaces that have items."""
        return await self._inner.list_namespaces(owner, query)


def _place(at: ItemKey) -> Place:
    return Place("item", encode_json([*at.namespace]), at.key)


def _opened(opener: Opener, owner: str, item: Item) -> Item:
    place = _place(ItemKey(item.namespace, item.key))
    return dataclasses.replace(item, value=opener.json(owner, place, item.value))
