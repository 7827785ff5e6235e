"""Items, on Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from holdfast.engines.cosine import rounded_cosines
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.filter_sql import FilterSql, filterable
from holdfast.engines.postgres.packed_vectors import unpack
from holdfast.engines.postgres.queries import filled, load
from holdfast.engines.postgres.vector import MAX_DIMENSION
from holdfast.spi.items import ItemSearch, ItemStorage, ItemWrite, NamespaceQuery
from holdfast.values.codec import decode_json, encode_json, encode_numbers
from holdfast.values.items import Item, ItemHit, ItemKey, Namespace

_SQL = load("items")
_FILTER = "/* filter */ TRUE"
_ROWS = "SELECT $3::text[] AS path, '' AS key, now() AS expires_at, false AS extra"
_SEARCH_PARAMETERS, _NEAR_PARAMETERS = 6, 9
_EPSILON = float(np.finfo(np.float32).eps)
_MOST = 1 << 40
_LAST = "\U0010ffff" * 129
"""Sorts after every label: a label has at most 128 characters."""


class PostgresItems(ItemStorage):
    """Stores items, with one row for each item and each namespace.

    ::

        items = PostgresItems(engine, tenant="acme")
    """

    name = Postgres.name
    max_dimension = MAX_DIMENSION

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def get(
        self, owner: str, keys: Sequence[ItemKey], *, refresh: bool
    ) -> Sequence[Item | None]:
        """Return items in the order of their keys; ``None`` for a key that does not exist."""
        if len(keys) == 1:
            [at] = keys
            sql = _SQL["get_one_refreshed"] if refresh else _SQL["get_one"]
            where = (self._tenant, owner, _path_key(at.namespace), at.key)
            row = await self._engine.fetchrow(sql, *where, safe=True)
            return [_item(at, row) if row else None]
        # Sorted, so that two calls that refresh never wait for each other in a circle.
        ordered = sorted(keys)
        spaces = [
            encode_json(list(one.namespace)) if refresh else _path_key(one.namespace)
            for one in ordered
        ]
        rows = await self._engine.fetch(
            _SQL["get_refreshed"] if refresh else _SQL["get"],
            *(self._tenant, owner, spaces, [one.key for one in ordered]),
            safe=True,
        )
        found = {ordered[row["at"] - 1]: row for row in rows}
        return [_item(at, found[at]) if at in found else None for at in keys]

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        """Store and delete items in one transaction. Returns their versions."""
        # Not idempotent: a retry would undo a put that another process made in between.
        if len(writes) == 1 and len(writes[0].vectors) <= 1:
            [write] = writes
            return [
                await self._engine.fetchval(
                    _SQL["put_one"],
                    *(self._tenant, owner, list(write.at.namespace), _path_key(write.at.namespace)),
                    *(write.at.key, write.value, self._filterable(owner, write)),
                    *(write.vectors[0] if write.vectors else None, write.ttl_seconds),
                    *(write.expected, write.subject),
                    safe=False,
                )
            ]
        versions: list[int] = await self._engine.fetchval(
            _SQL["put"],
            *(self._tenant, owner),
            [encode_json(list(write.at.namespace)) for write in writes],
            [write.at.key for write in writes],
            [write.value for write in writes],
            [self._filterable(owner, write) for write in writes],
            [_vectors(write.vectors) for write in writes],
            [write.ttl_seconds for write in writes],
            [write.expected for write in writes],
            [write.subject for write in writes],
            safe=False,
        )
        return versions

    def _filterable(self, owner: str, write: ItemWrite) -> str | None:
        if write.value is None:
            return None
        return filterable(write.value, tenant=self._tenant, collection=owner)

    async def search(self, owner: str, search: ItemSearch) -> list[ItemHit]:
        """Return items, the closest vector first; without a query, the newest first."""
        query = search.vector
        condition = FilterSql(
            search.wanted,
            first=(_NEAR_PARAMETERS if query else _SEARCH_PARAMETERS) + 1,
            tenant=self._tenant,
            collection=owner,
        )
        page = _SQL["search_near"] if query else _SQL["search"]
        sql = filled(page, {_FILTER: condition.condition})
        limit, offset = min(search.limit, _MOST), min(search.offset, _MOST)
        where = [owner, *_range(search.prefix), limit, offset]
        if query:
            where += [query, len(query), 2 * len(query) * _EPSILON]
        rows = await self._engine.search(
            filled(_SQL["refreshed"], {_ROWS: sql}) if search.refresh else sql,
            self._tenant,
            *(*where, *condition.parameters),
        )
        hits = _page(query, limit, offset, rows) if query else _newest(rows)
        if search.refresh and any(row["extra"] for row in rows):
            return await self._refreshed(owner, hits)
        return hits

    async def list_namespaces(self, owner: str, query: NamespaceQuery) -> list[Namespace]:
        """Return the namespaces that have items."""
        known = list(query.prefix)
        end = known.index(None) if None in known else len(known)
        prefix = [str(label) for label in known[:end]]
        rows = await self._engine.fetch(
            _SQL["list_namespaces"],
            *(self._tenant, owner, *_range(prefix), known, list(query.suffix)),
            *(query.max_depth, min(query.limit, _MOST), min(query.offset, _MOST)),
            safe=True,
        )
        return [tuple(row["path"]) for row in rows]

    async def _refreshed(self, owner: str, hits: list[ItemHit]) -> list[ItemHit]:
        """Restart the time to live of the found items that expire, by a second statement."""
        keys = [ItemKey(hit.item.namespace, hit.item.key) for hit in hits if hit.item.expires_at]
        if not keys:
            return hits
        found = dict(zip(keys, await self.get(owner, keys, refresh=True), strict=True))
        return [
            replace(hit, item=replace(hit.item, expires_at=now.expires_at))
            if (now := found.get(ItemKey(hit.item.namespace, hit.item.key)))
            else hit
            for hit in hits
        ]


def _newest(rows: Sequence[Any]) -> list[ItemHit]:
    ordered = sorted(rows, key=lambda row: -row["version"])
    return [ItemHit(_item(_key(row), row)) for row in ordered]


def _page(query: list[float], limit: int, offset: int, rows: Sequence[Any]) -> list[ItemHit]:
    """Return a page ordered by exact cosines.

    ``rows`` are those of the page by approximate cosines, and their neighbours.
    """
    scored = list(zip(_scores(query, rows), rows, strict=True))
    scored.sort(key=lambda one: (one[0] is None, -(one[0] or 0.0), -one[1]["version"]))
    # All items before the first of these rows come before the page.
    skipped = offset - min((row["rank"] - 1 for row in rows), default=0)
    return [
        ItemHit(_item(_key(row), row), score) for score, row in scored[skipped : skipped + limit]
    ]


def _scores(query: list[float], rows: Sequence[Any]) -> list[float | None]:
    """Return for each row the score of its best vector; ``None`` if it has no vectors."""
    vectors = [one for row in rows for one in row["vectors"]]
    if not vectors:
        return [None] * len(rows)
    matrix = np.array([unpack(one) for one in vectors])
    found = iter(rounded_cosines(query, matrix).tolist())
    return [max(islice(found, len(row["vectors"])), default=None) for row in rows]


def _path_key(path: Iterable[str]) -> str:
    r"""Return the text that the database has for a path, which sorts as the path.

    >>> _path_key(("notes", "ana"))
    'notes\x01\x01ana\x01\x01'
    """
    return "".join(label.replace("\x01", "\x01\x02") + "\x01\x01" for label in path)


def _range(prefix: Sequence[str]) -> tuple[str, str]:
    """Return the bounds of the keys of all paths with a prefix: the least, and one after all."""
    key = _path_key(prefix)
    return key, f"{key[:-1]}\x02" if key else _LAST


def _vectors(vectors: Sequence[list[float]]) -> str:
    """Return vectors as a Postgres array literal of pgvector values."""
    return "{" + ",".join(f'"{encode_numbers(one)}"' for one in vectors) + "}"


def _key(row: Any) -> ItemKey:
    return ItemKey(tuple(row["path"]), row["key"])


def _item(at: ItemKey, row: Any) -> Item:
    return Item(
        *at,
        decode_json(row["value"]),
        row["version"],
        row["created_at"],
        row["updated_at"],
        row.get("refreshed_until") or row["expires_at"],
        row["subject"],
    )
