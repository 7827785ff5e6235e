"""Where hostile input can enter an ``ItemStore``."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.items import ItemStore
from holdfast.testing.hostile import KEPT, REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.items import ItemKey, ItemPut

CONTRACT = "items"


async def _put(store: ItemStore, put: ItemPut) -> Any:
    await store.put_many([put])
    [found] = await store.get_many([ItemKey(put.namespace, put.key)])
    return found


async def _label(store: ItemStore, value: Any) -> Any:
    found = await _put(store, ItemPut(("users", value), "k", {}))
    # What can be stored can be looked for.
    [hit] = await store.search(("users", value))
    assert hit.item == found
    assert ("users", value) in await store.list_namespaces(suffix=(value,), limit=1000)
    return found and found.namespace[1]


async def _key(store: ItemStore, value: Any) -> Any:
    found = await _put(store, ItemPut(("users",), value, {}))
    return found and found.key


async def _value(store: ItemStore, value: Any) -> Any:
    found = await _put(store, ItemPut(("users",), "k", value))
    return found and found.value


async def _vector(store: ItemStore, value: Any) -> Any:
    await store.put_many([ItemPut(("users",), "k", {}, [value])])
    [hit] = await store.search(("users",), vector=value)
    assert hit.score is not None
    return NO_ECHO


async def _get_label(store: ItemStore, value: Any) -> Any:
    assert await store.get_many([ItemKey((value,), "k")]) == [None]
    return NO_ECHO


async def _get_key(store: ItemStore, value: Any) -> Any:
    assert await store.get_many([ItemKey(("users",), value)], refresh=True) == [None]
    return NO_ECHO


async def _prefix(store: ItemStore, value: Any) -> Any:
    assert await store.search((value,)) == []
    return NO_ECHO


async def _search_vector(store: ItemStore, value: Any) -> Any:
    assert await store.search((), vector=value) == []
    return NO_ECHO


async def _list_prefix(store: ItemStore, value: Any) -> Any:
    assert await store.list_namespaces(prefix=(value,)) == []
    return NO_ECHO


async def _list_suffix(store: ItemStore, value: Any) -> Any:
    assert await store.list_namespaces(suffix=(value,)) == []
    return NO_ECHO


async def _filter_value(store: ItemStore, value: Any) -> Any:
    # What can be stored can be asked for as a whole, up to the limit of conditions.
    await store.search((), filter={"k": {"$equals": value}})
    await store.put_many([ItemPut(("users",), "k", {"k": value})])
    [hit] = await store.search((), filter={"k": {"$equals": value}})
    return hit.item.value


def _any_dimension(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.name in {"too few", "too many"} else None


def _many_conditions(hostile: Hostile) -> Verdict | None:
    return REFUSED if hostile.name == "10,000 keys" else None


async def _subject(store: ItemStore, value: Any) -> Any:
    found = await _put(store, ItemPut(("users",), "k", {}, subject=value))
    return found and found.subject


def _empty_is_nobody(hostile: Hostile) -> Verdict | None:
    """Without a subject an item is about its owner."""
    return KEPT if hostile.value == "" else None


def _keep_none(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else None


def _any_vector(hostile: Hostile) -> Verdict | None:
    return _keep_none(hostile) or _any_dimension(hostile)


PROBES = (
    Probe("put_many.namespace", "id", _label),
    Probe("put_many.key", "id", _key),
    Probe("put_many.value", "object", _value),
    Probe("put_many.vectors", "vector", _vector, judge=_any_dimension),
    Probe("put_many.subject", "id", _subject, judge=_empty_is_nobody),
    Probe("get_many.namespace", "id", _get_label),
    Probe("get_many.key", "id", _get_key),
    Probe("search.prefix", "id", _prefix),
    Probe(
        "search.filter",
        "json",
        _filter_value,
        expect=lambda value: {"k": value},
        judge=_many_conditions,
    ),
    Probe("search.vector", "vector", _search_vector, judge=_any_vector),
    Probe("list_namespaces.prefix", "id", _list_prefix, judge=_keep_none),
    Probe("list_namespaces.suffix", "id", _list_suffix, judge=_keep_none),
)
