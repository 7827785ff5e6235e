"""Finds and counts the rows that an erasure deletes from Postgres, and stores the receipts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.erasure import (
    STORES,
    Counts,
    ErasureDraft,
    ErasureRecord,
    ErasureScope,
    ErasureStorage,
    Key,
    LastReceipt,
    Store,
)
from holdfast.values.codec import decode_json, encode_json

_SQL = load("erasure")


def _counting() -> LiteralString:
    """Return one SQL statement that counts the records of every store."""
    parts: list[LiteralString] = [
        f"(SELECT '{store}' AS store, sum(f.records)::bigint AS records FROM ({_SQL[store]}) f)"  # noqa: S608 - our own SQL
        for store in STORES
    ]
    return " UNION ALL ".join(parts)


_COUNT = _counting()


class PostgresErasures(ErasureStorage):
    """Finds and counts the rows of an erasure in the tables of all stores; stores the receipts.

    ::

        erasures = PostgresErasures(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def find(self, store: Store, scope: ErasureScope, limit: int) -> Sequence[Key]:
        """Return keys of a store's records that are in scope."""
        args = (self._tenant, scope.kind, scope.id, limit)
        rows = await self._engine.fetch(_SQL[store], *args, safe=True)
        return [tuple(row["key"]) for row in rows]

    async def count(self, scope: ErasureScope) -> Counts:
        """Return how many records each store has in scope."""
        args = (self._tenant, scope.kind, scope.id, None)
        rows = await self._engine.fetch(_COUNT, *args, safe=True)
        return {row["store"]: row["records"] for row in rows if row["records"]}

    async def forks(self, session_id: str) -> Sequence[str]:
        """Return the forks of a session, and the forks of those, the latest first."""
        rows = await self._engine.fetch(_SQL["forks"], self._tenant, session_id, safe=True)
        return [row["id"] for row in rows]

    async def sessions_about(self, subject: str) -> Sequence[str]:
        """Return the sessions about a subject, also deleted ones."""
        rows = await self._engine.fetch(_SQL["about"], self._tenant, subject, safe=True)
        return [row["id"] for row in rows]

    async def forget_rest(self, scope: ErasureScope) -> None:
        """Delete what no store deletes: the scope's dead letters, index entries and counters."""
        await self._engine.fetch(_SQL["rest"], self._tenant, scope.kind, scope.id, safe=True)

    async def begin(self, draft: ErasureDraft) -> ErasureRecord:
        """Store an erasure. If its scope has an unfinished one, return that instead."""
        row = await self._engine.fetchrow(
            _SQL["begin"],
            *(self._tenant, draft.id, draft.scope.kind, draft.scope.id, encode_json(draft.counts)),
            safe=True,
        )
        return _to_record(row)

    async def shred(self, erasure_id: str, scope: ErasureScope) -> Sequence[int]:
        """Destroy the data keys of the scope, and record their numbers."""
        args = (self._tenant, erasure_id, scope.kind, scope.id)
        return list(await self._engine.fetchval(_SQL["shred"], *args, safe=True))

    async def last(self) -> LastReceipt:
        """Return the newest receipt."""
        row = await self._engine.fetchrow(_SQL["last"], self._tenant, safe=True)
        return LastReceipt(0, "") if row is None else LastReceipt(row["number"], row["sha256"])

    async def finish(
        self, erasure_id: str, number: int, receipt: str, sha256: str
    ) -> ErasureRecord | None:
        """Store the receipt of an erasure, and delete its scope from the record."""
        args = (self._tenant, erasure_id, number, receipt, sha256)
        row = await self._engine.fetchrow(_SQL["finish"], *args, safe=True)
        return None if row is None else _to_record(row)

    async def list_erasures(self, limit: int, after_id: str | None) -> Sequence[ErasureRecord]:
        """Return a page of erasures, ordered by id."""
        args = (self._tenant, limit, after_id or "")
        rows = await self._engine.fetch(_SQL["list"], *args, safe=True)
        return [_to_record(row) for row in rows]


def _to_record(row: Any) -> ErasureRecord:
    return ErasureRecord(
        id=row["id"],
        kind=row["kind"],
        scope_id=row["scope_id"] or "",
        started_at=row["started_at"],
        counts=decode_json(row["counts"]),
        number=row["number"] or 0,
        finished_at=row["finished_at"],
        receipt=None if row["receipt"] is None else decode_json(row["receipt"]),
        data_keys=tuple(row["data_keys"]),
    )
