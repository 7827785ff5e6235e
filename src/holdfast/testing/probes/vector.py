"""Where hostile input can enter a ``VectorStore``."""

from __future__ import annotations

from typing import Any

from holdfast.contracts.vectors import VectorStore
from holdfast.testing.hostile import REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.content import TextBlock
from holdfast.values.documents import Document
from holdfast.values.filters import escape

CONTRACT = "vectors"
ONE = [1.0, 1.0, 1.0]


def _document(id: Any = "d", **parts: Any) -> Document:
    return Document(**{"content": [TextBlock("x")], "id": id, "embedding": ONE} | parts)


async def _add_id(store: VectorStore, value: Any) -> Any:
    [stored] = await store.add([_document(value)])
    return (await store.get([stored]))[0].id


async def _upsert_id(store: VectorStore, value: Any) -> Any:
    await store.upsert([_document(value)], collection="upserted")
    return (await store.get([value], collection="upserted"))[0].id


async def _add_collection(store: VectorStore, value: Any) -> Any:
    await store.add([_document()], collection=value)
    return next(name for name in await store.list_collections() if name == value)


async def _upsert_collection(store: VectorStore, value: Any) -> Any:
    await store.upsert([_document()], collection=value)
    return next(name for name in await store.list_collections() if name == value)


async def _text(store: VectorStore, value: Any) -> Any:
    await store.upsert([_document(content=[TextBlock(value)])])
    return (await store.search(ONE))[0].text


async def _metadata(store: VectorStore, value: Any) -> Any:
    await store.upsert([_document(metadata=value)])
    assert (await store.get(["d"]))[0].metadata == value
    return (await store.search(ONE))[0].metadata


async def _embedding(store: VectorStore, value: Any) -> Any:
    await store.upsert([_document("probe", embedding=value)])
    await store.search(ONE)
    return NO_ECHO


async def _query(store: VectorStore, value: Any) -> Any:
    found = await store.search(value)
    assert [result.id for result in found] == ["d"]
    return NO_ECHO


async def _search_collection(store: VectorStore, value: Any) -> Any:
    assert await store.search(ONE, collection=value) == []
    return NO_ECHO


async def _get_id(store: VectorStore, value: Any) -> Any:
    assert await store.get([value]) == []
    return NO_ECHO


async def _get_collection(store: VectorStore, value: Any) -> Any:
    assert await store.get(["d"], collection=value) == []
    return NO_ECHO


async def _delete_id(store: VectorStore, value: Any) -> Any:
    assert await store.delete([value]) == 0
    return NO_ECHO


async def _delete_collection_of(store: VectorStore, value: Any) -> Any:
    assert await store.delete(["d"], collection=value) == 0
    return NO_ECHO


async def _delete_collection(store: VectorStore, value: Any) -> Any:
    assert await store.delete_collection(value) == 0
    return NO_ECHO


async def _filter_key(store: VectorStore, value: Any) -> Any:
    if not isinstance(value, str):
        await store.search(ONE, filter={"$and": value})
    assert await store.search(ONE, filter={escape(value): 1}) == []
    await store.upsert([_document("keyed", metadata={value: 1})], collection="keyed")
    found = await store.search(ONE, collection="keyed", filter={escape(value): {"$gte": 1}})
    return next(iter(found[0].metadata))


async def _filter_value(store: VectorStore, value: Any) -> Any:
    assert await store.search(ONE, filter={"k": {"$eq": value}}) == []
    await store.upsert([_document("valued", metadata={"k": value})], collection="valued")
    found = await store.search(ONE, collection="valued", filter={"k": {"$eq": value}})
    return found[0].metadata["k"]


async def _filter(store: VectorStore, value: Any) -> Any:
    await store.search(ONE, filter={"$not": {"k": {"$gt": value}}})
    return NO_ECHO


async def _one_document(store: VectorStore) -> None:
    await store.add([_document()])


def _no_scalar(hostile: Hostile) -> Verdict | None:
    return REFUSED if isinstance(hostile.value, (list, dict)) else None


def _no_order(hostile: Hostile) -> Verdict | None:
    return (
        REFUSED if hostile.value is None or isinstance(hostile.value, (bool, list, dict)) else None
    )


PROBES = (
    Probe("add.documents.id", "id", _add_id),
    Probe("upsert.documents.id", "id", _upsert_id),
    Probe("add.collection", "id", _add_collection),
    Probe("upsert.collection", "id", _upsert_collection),
    Probe("documents.content", "text", _text),
    Probe("documents.metadata", "object", _metadata),
    Probe("documents.embedding", "vector", _embedding, prepare=_one_document),
    Probe("search.query_embedding", "vector", _query, prepare=_one_document),
    Probe("search.collection", "id", _search_collection),
    Probe("search.filter, a key", "text", _filter_key, prepare=_one_document),
    Probe("search.filter, a value", "json", _filter_value, prepare=_one_document, judge=_no_scalar),
    Probe("search.filter, a bound", "json", _filter, prepare=_one_document, judge=_no_order),
    Probe("get.ids", "id", _get_id),
    Probe("get.collection", "id", _get_collection),
    Probe("delete.ids", "id", _delete_id),
    Probe("delete.collection", "id", _delete_collection_of),
    Probe("delete_collection.collection", "id", _delete_collection),
)
