"""Indexes the waiting events of all tenants, in a process that neither appends nor recalls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, LiteralString

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.indexing import UNREADABLE, index_batch
from holdfast.engines.postgres.queries import load
from holdfast.spi.event_indexing import EventIndexer

_SQL = load("indexing")
_log = logging.getLogger("holdfast.engines.postgres")
AGENTS = 1000


class PostgresIndexer(EventIndexer):
    """Indexes the waiting events of all tenants in one database.

    ::

        await PostgresIndexer(engine).drain()
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    async def waiting(self) -> int:
        """Return an upper bound of the number of waiting events."""
        [row] = await self._engine.fetch_across(_SQL["waiting"], safe=True)
        return int(row[0])

    async def drain(self, progress: Callable[[int], None] | None = None) -> int:
        """Index events until none waits. Returns how many were indexed."""

        async def fetch(sql: LiteralString, tenant: str, *args: Any) -> Sequence[Any]:
            return await self._engine.fetch(sql, tenant, *args, safe=True)

        total = 0
        failed: set[tuple[str, str]] = set()
        while True:
            queue = await self._engine.fetch_across(_SQL["queue"], AGENTS, safe=True)
            agents = [(tenant, agent) for tenant, agent in queue if (tenant, agent) not in failed]
            if not agents:
                return total
            for tenant, agent in agents:
                try:
                    while done := await index_batch(fetch, tenant, agent):
                        total += done
                        if progress is not None:
                            progress(done)
                except UNREADABLE:
                    # What one agent stored must not stop the index of all others.
                    _log.exception("the events of an agent cannot be indexed")
                    failed.add((tenant, agent))
