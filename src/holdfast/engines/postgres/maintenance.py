"""Database maintenance: purging, indexing, vector indexes; safe to run at any time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, LiteralString

from holdfast.engines.postgres.errors import mapped
from holdfast.engines.postgres.indexes import index_collections, index_event_vectors
from holdfast.engines.postgres.indexing import UNREADABLE, index_batch
from holdfast.engines.postgres.queries import load

_BATCH = 1000
_INDEXED_AT_ONCE = 4000
"""Larger batches than a recall uses leave fewer index blocks to merge."""

_SLICES = 8
_FREE_AFTER = 5000
"""After the rows of this many events are merged, ``VACUUM`` frees the space of the earlier ones."""

_INDEXING = load("indexing")
_log = logging.getLogger("holdfast.engines.postgres")
_ADMIN = load("admin")


class Maintenance:
    """The jobs of ``holdfast db maintain``, on one connection outside of a transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs by name; each returns how much it did."""
        return {
            "expired states": lambda: self._purge(load("short_term")["purge"]),
            "deleted sessions": lambda: self._purge(load("episodes")["purge_sessions"]),
            "expired threads": lambda: self._purge(load("checkpoints")["purge"]),
            "expired items": lambda: self._purge(load("items")["purge"]),
            "empty namespaces": lambda: self._purge(load("items")["purge_namespaces"]),
            "expired blobs": lambda: self._purge(load("blob")["purge"]),
            "expired channel events": lambda: self._purge(load("channel")["purge"]),
            "expired facts": lambda: self._purge(load("long_term")["purge"]),
            "dead deliveries": lambda: self._purge(load("ledger_push")["purge"]),
            "empty collections": lambda: self._purge(load("vector")["purge_collections"]),
            "events indexed for recall": self._index_events,
            "blocks of words merged": self._merge_blocks,
            "vector indexes": self._index_vectors,
            "tables analysed": self._analyse,
        }

    async def _purge(self, sql: LiteralString) -> int:
        """Delete expired rows in batches, so that locks are short."""
        total = 0
        with mapped(wrote=True):
            while gone := await self._connection.fetchval(sql, _BATCH):
                total += gone
        return total

    async def _index_events(self) -> int:
        total = 0
        failed: set[tuple[str, str]] = set()
        while True:
            with mapped(wrote=True):
                queue = await self._connection.fetch(_INDEXING["queue"], _BATCH)
            agents = [(tenant, agent) for tenant, agent in queue if (tenant, agent) not in failed]
            if not agents:
                return total
            for tenant, agent in agents:
                try:
                    with mapped(wrote=True):
                        while done := await index_batch(
                            self._connection.fetch, tenant, agent, limit=_INDEXED_AT_ONCE
                        ):
                            total += done
                except UNREADABLE:
                    # What one agent stored must not stop the index of all others.
                    _log.exception("the events of an agent cannot be indexed")
                    failed.add((tenant, agent))

    async def _merge_blocks(self) -> int:
        """Merge the index blocks of agents that were indexed in several batches since the last run.

        Returns by how many rows the table shrank. Each slice is merged in a separate transaction,
        and the space of its old rows is reused by the next, so that the table does not double.
        """
        total = merged = 0
        with mapped(wrote=True):
            while agents := await self._connection.fetch(_INDEXING["unmerged"], 1, _BATCH):
                for tenant, agent, events in agents:
                    for at in range(_SLICES):
                        total += await self._connection.fetchval(
                            _INDEXING["merge_slice"], tenant, agent, at, _SLICES
                        )
                        merged += events / _SLICES
                        if merged > _FREE_AFTER:
                            await self._free_blocks()
                            merged = 0
        return total

    async def _free_blocks(self) -> None:
        """Run ``VACUUM`` on the table of index blocks, if the role may."""
        for [statement] in await self._connection.fetch(_INDEXING["free_blocks"]):
            await self._connection.execute(statement)

    async def _index_vectors(self) -> int:
        built = 0
        for steps in (index_collections, index_event_vectors):
            async for _ in steps(self._connection):
                built += 1
        return built

    async def _analyse(self) -> int:
        """Run ``ANALYZE``, for the planner, on the tables that changed much since the last one."""
        with mapped(wrote=True):
            tables = await self._connection.fetch(_ADMIN["stale_tables"])
            for [statement] in tables:
                await self._connection.execute(statement)
        return len(tables)
