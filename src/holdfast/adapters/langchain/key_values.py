"""A LangChain key-value store on ``state.items``."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.stores import BaseStore

from holdfast.adapters.keys import id_of, text_of
from holdfast.blocking import Portal
from holdfast.values.items import ItemKey, ItemPut
from holdfast.values.limits import ITEMS_PER_CALL
from holdfast.wiring.state import State

_BYTES, _JSON = "bytes", "json"
_ALL = 1 << 40


class HoldfastKeyValueStore(BaseStore[str, Any]):
    """A ``BaseStore`` whose values are bytes or JSON, for every thread and event loop.

    ``state`` determines the engine, the tenant and the owner, and ``name`` separates stores of one
    state. Values expire ``ttl_seconds`` after they were set. Up to 1,000 pairs are set all or none.
    ::

        cache = HoldfastKeyValueStore(state, name="embeddings")
        embedder = CacheBackedEmbeddings.from_bytes_store(model, cache)
    """

    def __init__(
        self, state: State | Portal, *, name: str = "default", ttl_seconds: float | None = None
    ) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self._namespace = ("langchain", "values", id_of(name))
        self._ttl_seconds = ttl_seconds

    def mget(self, keys: Sequence[str]) -> list[Any]:
        """Return the values of keys; ``None`` for a key that does not exist."""
        return self._portal.run(self._get(keys))

    async def amget(self, keys: Sequence[str]) -> list[Any]:
        """Return the values of keys; ``None`` for a key that does not exist."""
        return await self._portal.arun(self._get(keys))

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Set the values of keys. If a key occurs several times, its last value is stored."""
        self._portal.run(self._put(self._sets(key_value_pairs)))

    async def amset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Set the values of keys. If a key occurs several times, its last value is stored."""
        await self._portal.arun(self._put(self._sets(key_value_pairs)))

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete keys. Keys that do not exist are ignored."""
        self._portal.run(self._put(self._deletes(keys)))

    async def amdelete(self, keys: Sequence[str]) -> None:
        """Delete keys. Keys that do not exist are ignored."""
        await self._portal.arun(self._put(self._deletes(keys)))

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys that begin with a prefix, as of the moment when the first one is read."""
        yield from self._portal.run(self._keys(prefix))

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Yield the keys that begin with a prefix, as of the moment when the first one is read."""
        for key in await self._portal.arun(self._keys(prefix)):
            yield key

    async def _get(self, keys: Sequence[str]) -> list[Any]:
        wanted = [ItemKey(self._namespace, id_of(key)) for key in keys]
        values: list[Any] = []
        for first in range(0, len(wanted), ITEMS_PER_CALL):
            page = await self._portal.state.items.get_many(wanted[first : first + ITEMS_PER_CALL])
            values += [None if item is None else _unwrapped(item.value) for item in page]
        return values

    async def _put(self, puts: list[ItemPut]) -> None:
        for first in range(0, len(puts), ITEMS_PER_CALL):
            await self._portal.state.items.put_many(puts[first : first + ITEMS_PER_CALL])

    async def _keys(self, prefix: str | None) -> list[str]:
        # All at once: a page that is read later would miss what was set in between.
        hits = await self._portal.state.items.search(self._namespace, limit=_ALL)
        keys = [text_of(hit.item.key) for hit in hits]
        return [key for key in keys if key.startswith(prefix or "")]

    def _sets(self, pairs: Sequence[tuple[str, Any]]) -> list[ItemPut]:
        return [
            ItemPut(self._namespace, id_of(key), _wrapped(value), ttl_seconds=self._ttl_seconds)
            for key, value in dict(pairs).items()
        ]

    def _deletes(self, keys: Sequence[str]) -> list[ItemPut]:
        return [ItemPut(self._namespace, id_of(key), None) for key in dict.fromkeys(keys)]


def _wrapped(value: Any) -> dict[str, Any]:
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    return {_JSON: value}


def _unwrapped(value: dict[str, Any]) -> Any:
    return base64.b64decode(value[_BYTES]) if _BYTES in value else value[_JSON]
