"""Items, in process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from holdfast.engines.cosine import rounded_cosines
from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.items import ItemSearch, ItemStorage, ItemWrite, NamespaceQuery, outdated
from holdfast.values.codec import decode_json
from holdfast.values.filters import matches
from holdfast.values.items import Item, ItemHit, ItemKey, Namespace


@dataclass
class _Row:
    value: str
    vectors: Sequence[list[float]]
    version: int
    created_at: datetime
    updated_at: datetime
    ttl_seconds: float | None
    expires_at: datetime | None
    subject: str = ""

    def score(self, query: list[float]) -> float | None:
        """Return the best cosine of a vector that has the query's dimension, or ``None``."""
        fitting = [one for one in self.vectors if len(one) == len(query)]
        return float(max(rounded_cosines(query, np.array(fitting)))) if fitting else None


@dataclass
class _Data:
    owners: dict[str, dict[ItemKey, _Row]] = field(default_factory=dict)
    last_version: int = 0


class InMemoryItems(ItemStorage):
    """Stores items in dicts.

    >>> items = InMemoryItems(InMemory(), tenant="acme")
    """

    name = InMemory.name
    max_dimension = sys.maxsize

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def get(
        self, owner: str, keys: Sequence[ItemKey], *, refresh: bool
    ) -> Sequence[Item | None]:
        """Return items in the order of their keys; ``None`` for a key that does not exist."""
        rows = self._rows(owner)
        found = [(at, self._live(rows, at)) for at in keys]
        return [self._item(at, row, refresh=refresh) if row else None for at, row in found]

    async def put(self, owner: str, writes: Sequence[ItemWrite]) -> list[int]:
        """Store and delete items in one step. Returns their versions."""
        rows = self._rows(owner)
        for write in writes:
            row = self._live(rows, write.at)
            actual = row.version if row else 0
            if write.expected is not None and write.expected != actual:
                raise outdated(write.at, write.expected, actual)
        return [self._write(rows, write) for write in writes]

    async def search(self, owner: str, search: ItemSearch) -> list[ItemHit]:
        """Return items, the closest vector first; without a query, the newest first."""
        prefix, query = search.prefix, search.vector
        found = [
            (None if query is None else row.score(query), row.version, at, row)
            for at, row in self._present(owner)
            if at.namespace[: len(prefix)] == prefix
            and matches(search.wanted, decode_json(row.value))
        ]
        found.sort(key=lambda one: (one[0] is None, -(one[0] or 0.0), -one[1]))
        page = found[search.offset : search.offset + search.limit]
        return [
            ItemHit(self._item(at, row, refresh=search.refresh), score)
            for score, _, at, row in page
        ]

    async def list_namespaces(self, owner: str, query: NamespaceQuery) -> list[Namespace]:
        """Return the namespaces that have items."""
        found = {
            at.namespace[: query.max_depth]
            for at, _ in self._present(owner)
            if _fits(at.namespace, query.prefix) and _fits(at.namespace[::-1], query.suffix[::-1])
        }
        return sorted(found)[query.offset : query.offset + query.limit]

    def _write(self, rows: dict[ItemKey, _Row], write: ItemWrite) -> int:
        old = rows.get(write.at)
        if write.value is None:
            rows.pop(write.at, None)
            return 0
        self._data.last_version += 1
        now = self._engine.now()
        rows[write.at] = _Row(
            write.value,
            write.vectors,
            self._data.last_version,
            old.created_at if old else now,
            now,
            write.ttl_seconds,
            _until(now, write.ttl_seconds),
            write.subject,
        )
        return self._data.last_version

    def _rows(self, owner: str) -> dict[ItemKey, _Row]:
        return self._data.owners.setdefault(owner, {})

    def _live(self, rows: dict[ItemKey, _Row], at: ItemKey) -> _Row | None:
        """Return an item, or ``None``; delete it if it has expired."""
        row = rows.get(at)
        if row and row.expires_at and row.expires_at <= self._engine.now():
            del rows[at]
            return None
        return row

    def _present(self, owner: str) -> Iterator[tuple[ItemKey, _Row]]:
        """Yield all items of an owner, and delete those that have expired."""
        rows = self._rows(owner)
        for at in list(rows):
            if row := self._live(rows, at):
                yield at, row

    def _item(self, at: ItemKey, row: _Row, *, refresh: bool) -> Item:
        if refresh:
            row.expires_at = _until(self._engine.now(), row.ttl_seconds)
        value = decode_json(row.value)
        return Item(
            *(*at, value, row.version, row.created_at, row.updated_at, row.expires_at),
            subject=row.subject,
        )


def _until(now: datetime, ttl_seconds: float | None) -> datetime | None:
    return None if ttl_seconds is None else now + timedelta(seconds=ttl_seconds)


def _fits(labels: Sequence[str], pattern: Sequence[str | None]) -> bool:
    return len(labels) >= len(pattern) and all(
        wanted in (None, label) for label, wanted in zip(labels, pattern, strict=False)
    )
