"""Wrapped data keys, on Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.data_keys import DataKey, DataKeyStorage

_SQL = load("data_keys")


class PostgresDataKeys(DataKeyStorage):
    """Stores the wrapped data keys of one tenant, one row per key.

    ::

        keys = PostgresDataKeys(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def add(self, key: DataKey) -> DataKey:
        """Store a key unless its subject has one. Returns the key that the subject has now."""
        # Two statements, since the first one does not see the row of a concurrent one.
        while True:
            await self._engine.fetch(_SQL["add"], self._tenant, *key[:4], safe=True)
            found = await self.of_subject(key.subject)
            if found is not None:
                return found

    async def of_subject(self, subject: str) -> DataKey | None:
        """Return the current key of a subject."""
        row = await self._engine.fetchrow(_SQL["of_subject"], self._tenant, subject, safe=True)
        return None if row is None else DataKey(*row)

    async def replace(self, key: DataKey, was: int) -> bool:
        """Store a key in place of the current one of its subject, if that is ``was``."""
        args = (self._tenant, *key[:4], was)
        # Safe to repeat: the repeat finds the key that it stored.
        return bool(await self._engine.fetchval(_SQL["replace"], *args, safe=True))

    async def current(self, older_than_seconds: float, after: int, limit: int) -> Sequence[DataKey]:
        """Return a page of current keys older than this, ascending by number."""
        args = (self._tenant, older_than_seconds, after, limit)
        rows = await self._engine.fetch(_SQL["current"], *args, safe=True)
        return [DataKey(*row) for row in rows]

    async def of_numbers(self, numbers: Sequence[int]) -> Sequence[DataKey]:
        """Return keys by their numbers."""
        rows = await self._engine.fetch(_SQL["of_numbers"], self._tenant, list(numbers), safe=True)
        return [DataKey(*row) for row in rows]

    async def page(self, after: int, limit: int) -> Sequence[DataKey]:
        """Return a page of keys, ascending by number."""
        rows = await self._engine.fetch(_SQL["page"], self._tenant, after, limit, safe=True)
        return [DataKey(*row) for row in rows]

    async def rewrap(self, key: DataKey, was: str) -> bool:
        """Replace the KEK and the wrapped bytes of a key, if the KEK ``was`` wraps it."""
        args = (self._tenant, key.number, was, key.kek, key.wrapped)
        return bool(await self._engine.fetch(_SQL["rewrap"], *args, safe=True))

    async def tenants(self, kek: str, after: str, limit: int) -> Sequence[str]:
        """Return tenants that have keys which another KEK than ``kek`` wraps."""
        rows = await self._engine.fetch_across(_SQL["tenants"], kek, after, limit, safe=True)
        return [row["tenant"] for row in rows]
