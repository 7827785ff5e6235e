"""A naive ``ItemStore``: one list of rows, searched from the front."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.errors import VersionConflictError
from holdfast.values.filters import matches, parse
from holdfast.values.items import Item, ItemHit, ItemKey, ItemPut


class NaiveItems:
    """One list of rows; the tenant is a part of each."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.shared = shared
        self.tenant = tenant
        self.rows = shared.table("items")
        self.versions = shared.table("item versions")

    def _own(self) -> list[dict[str, Any]]:
        self.rows[:] = [
            row for row in self.rows if row["until"] is None or row["until"] > self.shared.now
        ]
        return [row for row in self.rows if row["tenant"] == self.tenant]

    def _row(self, namespace: Any, key: str) -> dict[str, Any] | None:
        for row in self._own():
            if (row["namespace"], row["key"]) == (tuple(namespace), key):
                return row
        return None

    def _item(self, row: dict[str, Any], *, refresh: bool) -> Item:
        if refresh and row["ttl"] is not None:
            row["until"] = self.shared.now + timedelta(seconds=row["ttl"])
        return Item(
            row["namespace"],
            row["key"],
            json.loads(row["value"]),
            row["version"],
            row["created"],
            row["updated"],
            row["until"],
            row["subject"],
        )

    async def get_many(self, keys: list[ItemKey], *, refresh: bool = False) -> list[Item | None]:
        """One by one."""
        found = [self._row(*key) for key in keys]
        return [self._item(row, refresh=refresh) if row else None for row in found]

    async def put_many(self, puts: list[ItemPut]) -> list[int]:
        """Compare all versions first, then write one by one, in the order of the keys."""
        ordered = sorted(puts, key=lambda put: (put.namespace, put.key))
        for put in ordered:
            row = self._row(put.namespace, put.key)
            actual = row["version"] if row else 0
            if put.expected_version not in (None, actual):
                raise VersionConflictError("item", put.key, expected=0, actual=actual)
        versions = {}
        for put in ordered:
            versions[put.namespace, put.key] = self._put(put)
        return [versions[put.namespace, put.key] for put in puts]

    def _put(self, put: ItemPut) -> int:
        old = self._row(put.namespace, put.key)
        if old:
            self.rows.remove(old)
        if put.value is None:
            return 0
        self.versions.append(len(self.versions) + 1)
        now, ttl = self.shared.now, put.ttl_seconds
        self.rows.append(
            {
                "tenant": self.tenant,
                "namespace": put.namespace,
                "key": put.key,
                "value": json.dumps(put.value),
                "vectors": [list(vector) for vector in put.vectors],
                "version": self.versions[-1],
                "created": old["created"] if old else now,
                "updated": now,
                "ttl": ttl,
                "until": None if ttl is None else now + timedelta(seconds=ttl),
                "subject": put.subject,
            }
        )
        return int(self.versions[-1])

    async def search(
        self,
        prefix: tuple[str, ...],
        *,
        filter: Any = None,
        vector: list[float] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[ItemHit]:
        """Score all, sort all."""
        wanted = parse(filter)
        found = [
            (_score(vector, row["vectors"]), row)
            for row in self._own()
            if row["namespace"][: len(prefix)] == prefix
            and matches(wanted, json.loads(row["value"]))
        ]
        found.sort(key=lambda one: one[1]["version"], reverse=True)
        found.sort(key=lambda one: -2.0 if one[0] is None else one[0], reverse=True)
        return [
            ItemHit(self._item(row, refresh=refresh), score)
            for score, row in found[offset : offset + limit]
        ]

    async def list_namespaces(
        self,
        *,
        prefix: Any = (),
        suffix: Any = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Compare label by label."""
        found = set()
        for row in self._own():
            path = row["namespace"]
            if len(path) < max(len(prefix), len(suffix)):
                continue
            ends = path[len(path) - len(suffix) :]
            pairs = [*zip(prefix, path, strict=False), *zip(suffix, ends, strict=True)]
            if all(label is None or label == own for label, own in pairs):
                found.add(path if max_depth is None else path[:max_depth])
        return sorted(found)[offset : offset + limit]


def _score(query: list[float] | None, vectors: list[list[float]]) -> float | None:
    cosines = [
        sum(a * b for a, b in zip(query, vector, strict=True))
        / (math.hypot(*query) * math.hypot(*vector))
        for vector in vectors
        if query is not None and len(query) == len(vector)
    ]
    return round(max(cosines), 12) + 0.0 if cosines else None
