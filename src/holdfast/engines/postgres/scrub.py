"""Removes the bytes of deleted rows from the files of the server.

Deleted rows stay in the files of their tables and indexes, a sample of values in the statistics of
the planner, and everything in the write-ahead log, until the space is used again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.engines.postgres.errors import mapped
from holdfast.engines.postgres.queries import load

_SQL = load("scrub")


class Scrub:
    """The jobs of ``holdfast db maintain --scrub``, on a connection of a superuser.

    Each table is locked while VACUUM FULL rewrites it. Recycled WAL segments are overwritten.
    Data in replicas, replication slots, backups and a WAL archive is not removed. ::

        for name, job in Scrub(connection).jobs().items():
            print(name, await job())
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs by name, to be run in this order. Each returns how much it did."""
        return {
            "tables rewritten": self._rewrite_tables,
            "segments of the log overwritten": self._overwrite_log,
        }

    async def _rewrite_tables(self) -> int:
        """Rewrite every table with its indexes and statistics."""
        with mapped(wrote=True):
            statements = await self._connection.fetch(_SQL["rewrite"])
            for [statement] in statements:
                await self._connection.execute(statement)
        return len(statements)

    async def _overwrite_log(self) -> int:
        """Overwrite the recycled segments of the write-ahead log, which still have old data.

        A checkpoint renames old segments to later ones. Each of those is then filled, first with a
        record and then with empty pages up to its end.
        """
        with mapped(wrote=True):
            await self._next_segment()
            waiting = await self._connection.fetchval(_SQL["segments_to_come"])
            for _ in range(waiting + 1):
                await self._next_segment()
        return int(waiting)

    async def _next_segment(self) -> None:
        await self._connection.fetchval(_SQL["switch"])
        await self._connection.execute("CHECKPOINT")
