"""A LangGraph store on ``state.items``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from holdfast.adapters.keys import id_of, text_of
from holdfast.adapters.langgraph.store_filters import to_filter
from holdfast.blocking import Portal
from holdfast.contracts.items import ItemStore
from holdfast.values import items as stored
from holdfast.values.errors import InvalidInputError
from holdfast.values.limits import ITEMS_PER_CALL
from holdfast.wiring.state import State

Vectors = Mapping[str, list[float]]
_WHOLE = "$"
_ROOT = "langgraph"
"""The first label of all namespaces, which separates these items from others in ``state.items``."""


class HoldfastStore(BaseStore):
    """A store for ``graph.compile(store=...)``, for every thread and event loop.

    ``state`` determines the engine, the tenant and the owner. ``index`` and ``ttl`` are those of
    LangGraph: an embedder with the fields to embed, and minutes. The puts of a batch are done all
    or none, after its reads. Expired items are never returned. ::

        store = HoldfastStore(state, index={"embed": embeddings, "dims": 384, "fields": ["text"]})
        graph = builder.compile(store=store)
        await store.aput(("users", "ana"), "profile", {"text": "lives in Riga"})
    """

    supports_ttl = True

    def __init__(
        self,
        state: State | Portal,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self.index_config = None if index is None else dict(index)
        self.embeddings = None if index is None else ensure_embeddings(index.get("embed"))
        self.ttl_config = ttl
        self._fields = list((index or {}).get("fields") or [_WHOLE])

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations and wait for them: reads first, then all puts in one transaction."""
        asked, queries, texts = self._planned(ops)
        embedder = self.embeddings
        near = [embedder.embed_query(query) for query in queries] if embedder else []
        found = embedder.embed_documents(texts) if embedder and texts else []
        vectors = self._embedded(queries, near), self._embedded(texts, found)
        return self._portal.run(self._run(asked, *vectors))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, then all puts in one transaction."""
        asked, queries, texts = self._planned(ops)
        embedder = self.embeddings
        near = await self._near(queries) if queries else []
        found = await embedder.aembed_documents(texts) if embedder and texts else []
        vectors = self._embedded(queries, near), self._embedded(texts, found)
        puts = any(isinstance(op, PutOp) for op in asked)
        return await self._portal.arun(self._run(asked, *vectors), settle=puts)

    async def _near(self, queries: list[str]) -> list[list[float]]:
        assert self.embeddings is not None  # noqa: S101 - for the type checker
        if len(queries) == 1:
            return [await self.embeddings.aembed_query(queries[0])]
        return list(await asyncio.gather(*map(self.embeddings.aembed_query, queries)))

    def _planned(self, ops: Iterable[Op]) -> tuple[list[Op], list[str], list[str]]:
        """Check operations. Returns them, and the queries and texts to embed, without repeats."""
        asked = list(ops)
        for op in asked:
            if not isinstance(op, (GetOp, SearchOp, PutOp, ListNamespacesOp)):
                raise InvalidInputError("ops", f"unknown operation: {type(op).__name__}")
            validate_op_namespace(op)
        if self.embeddings is None:
            return asked, [], []
        queries = [op.query for op in asked if isinstance(op, SearchOp) and op.query]
        texts = [text for op in _last_puts(asked) for text in self._texts(op)]
        return asked, list(dict.fromkeys(queries)), list(dict.fromkeys(texts))

    def _texts(self, op: PutOp) -> list[str]:
        """Return the texts of an item that are embedded."""
        if self.embeddings is None or op.value is None or op.index is False:
            return []
        fields = self._fields if op.index is None else op.index
        paths = [field if field == _WHOLE else tokenize_path(field) for field in fields]
        found = [text for path in paths for text in get_text_at_path(op.value, path)]
        return list(dict.fromkeys(found))

    def _embedded(self, texts: list[str], found: Sequence[Any]) -> Vectors:
        """Return the vectors of texts; the vector of a text is empty if it has only zeros."""
        if len(found) != len(texts):
            raise InvalidInputError(
                "index.embed", f"returned {len(found)} vectors for {len(texts)} texts"
            )
        if not texts:
            return {}
        vectors = [[float(one) for one in vector] for vector in found]
        dims = (self.index_config or {}).get("dims")
        for vector in vectors:
            if dims is not None and len(vector) != dims:
                raise InvalidInputError(
                    "index.dims", f"is {dims}, but the embedder returned {len(vector)} numbers"
                )
        usable = [vector if any(vector) else [] for vector in vectors]
        return dict(zip(texts, usable, strict=True))

    async def _run(self, ops: list[Op], queries: Vectors, texts: Vectors) -> list[Result]:
        """Run operations on the event loop of the state."""
        items = self._portal.state.items
        results: list[Result] = [None] * len(ops)
        for refresh in (False, True):
            gets = {
                at: op
                for at, op in enumerate(ops)
                if isinstance(op, GetOp) and bool(op.refresh_ttl) is refresh and op.namespace
            }
            if not gets:
                continue
            found = await _get(items, list(gets.values()), refresh=refresh)
            for at, get in gets.items():
                results[at] = found.get((tuple(get.namespace), get.key))
        for at, op in enumerate(ops):
            if isinstance(op, SearchOp):
                results[at] = await _search(items, op, queries.get(op.query or "") or None)
            elif isinstance(op, ListNamespacesOp):
                results[at] = await _list(items, op)
        puts = [self._put(op, texts) for op in _last_puts(ops)]
        if puts:
            await items.put_many(puts)
        return results

    def _put(self, op: PutOp, texts: Vectors) -> stored.ItemPut:
        value: Any = op.value
        return stored.ItemPut(
            _path(op.namespace),
            id_of(op.key),
            dict(value) if isinstance(value, Mapping) else value,
            [texts[text] for text in self._texts(op) if texts[text]],
            None if op.ttl is None or op.value is None else op.ttl * 60,
        )


def _last_puts(ops: Iterable[Op]) -> list[PutOp]:
    """Return the puts; if several are for the same item, only the last of them."""
    last = {(tuple(op.namespace), op.key): op for op in ops if isinstance(op, PutOp)}
    return list(last.values())


def _path(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the namespace in ``state.items`` for a namespace of LangGraph."""
    return (_ROOT, *map(id_of, labels))


def _labels(path: Sequence[str]) -> tuple[str, ...]:
    """Return the namespace of LangGraph for a namespace in ``state.items``."""
    return tuple(map(text_of, path[1:]))


async def _get(
    items: ItemStore, ops: list[GetOp], *, refresh: bool
) -> dict[tuple[tuple[str, ...], str], Item]:
    """Return the items that exist, by namespace and key."""
    keys = [stored.ItemKey(_path(op.namespace), id_of(op.key)) for op in ops]
    found: dict[tuple[tuple[str, ...], str], Item] = {}
    for first in range(0, len(keys), ITEMS_PER_CALL):
        page = await items.get_many(keys[first : first + ITEMS_PER_CALL], refresh=refresh)
        for one in filter(None, page):
            item = Item(**_fields(one))
            found[item.namespace, item.key] = item
    return found


async def _search(items: ItemStore, op: SearchOp, vector: list[float] | None) -> list[SearchItem]:
    hits = await items.search(
        _path(op.namespace_prefix),
        filter=to_filter(op.filter),
        vector=vector,
        limit=op.limit,
        offset=op.offset,
        refresh=bool(op.refresh_ttl),
    )
    return [SearchItem(**_fields(hit.item), score=hit.score) for hit in hits]


async def _list(items: ItemStore, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    conditions = op.match_conditions or ()
    prefix, suffix = _pattern(conditions, "prefix"), _pattern(conditions, "suffix")
    if prefix is None or suffix is None:
        return []
    # As many labels as the suffix has, so that the suffix is never compared with the root.
    missing = [None] * (len(suffix) - len(prefix))
    found = await items.list_namespaces(
        prefix=[_ROOT, *prefix, *missing],
        suffix=suffix[::-1],
        max_depth=None if op.max_depth is None else op.max_depth + 1,
        limit=op.limit,
        offset=op.offset,
    )
    return [_labels(one) for one in found]


def _pattern(
    conditions: Iterable[MatchCondition], kind: Literal["prefix", "suffix"]
) -> list[str | None] | None:
    """Return match conditions as one pattern; a suffix is reversed.

    Returns ``None`` if no namespace can meet all conditions.
    """
    merged: list[str | None] = []
    for condition in conditions:
        if condition.match_type != kind:
            continue
        path = condition.path if kind == "prefix" else condition.path[::-1]
        merged += [None] * (len(path) - len(merged))
        for at, label in enumerate(path):
            if label == "*":
                continue
            if merged[at] not in (None, id_of(label)):
                return None
            merged[at] = id_of(label)
    return merged


def _fields(item: stored.Item) -> dict[str, Any]:
    return {
        "namespace": _labels(item.namespace),
        "key": text_of(item.key),
        "value": item.value,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
