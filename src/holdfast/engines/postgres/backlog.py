"""Counts the waiting work of all tenants, on Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.backlog import BacklogStorage
from holdfast.values.backlog import OTHER, Backlog

_SQL = load("backlog")


class PostgresBacklog(BacklogStorage):
    """Counts the waiting work of all tenants in one database.

    ::

        found = await PostgresBacklog(engine).backlog(["writer"], 10_000)
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine

    async def backlog(self, agents: Sequence[str], limit: int) -> Backlog:
        """Count waiting work; at most ``limit`` tasks of each state are counted."""
        rows = await self._engine.fetch_across(_SQL["backlog"], list(agents), limit, safe=True)
        found = {row["kind"]: row["amount"] for row in rows if row["kind"] != "task"}
        tasks = {
            (row["state"], row["agent"] or OTHER): int(row["amount"])
            for row in rows
            if row["kind"] == "task"
        }
        return Backlog(tasks, found["oldest"], int(found["unembedded"]), int(found["dead"]))
