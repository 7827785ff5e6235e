"""Deletes sessions and ended tasks that are older than a retention policy allows, in batches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from holdfast.engines.postgres.errors import mapped
from holdfast.engines.postgres.queries import load
from holdfast.values.retention import Retention

_SQL = load("retention")
_BATCH = 500
_COUNTED = 100_000
"""How many tasks a dry run counts at most."""


class Retain:
    """The jobs of ``holdfast db maintain --retain``, on one connection outside of a transaction.

    Each batch is one transaction. A run that is killed has deleted only whole sessions and tasks,
    and the next run continues.
    """

    def __init__(self, connection: Any, policy: Retention) -> None:
        self._connection = connection
        self._policy = policy

    def jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs by name. Each returns how many it deleted; in a dry run, would delete."""
        found: dict[str, Callable[[], Awaitable[int]]] = {}
        if self._policy.sessions is not None:
            found["old sessions"] = self._sessions
        if self._policy.tasks is not None:
            found["old tasks"] = self._tasks
        return found

    async def _sessions(self) -> int:
        policy, after = self._policy, ("", "")
        total = 0
        if policy.sessions is None:
            return 0
        before = datetime.now(UTC) - policy.sessions
        with mapped(wrote=True):
            while True:
                gone, tenant, last = await self._connection.fetchrow(
                    _SQL["sessions"], policy.tenant, before, *after, _BATCH, policy.dry_run
                )
                total += int(gone)
                if last is None:
                    return total
                after = (tenant, last)

    async def _tasks(self) -> int:
        policy, total = self._policy, 0
        if policy.tasks is None:
            return 0
        before = datetime.now(UTC) - policy.tasks
        with mapped(wrote=True):
            most = _COUNTED if policy.dry_run else _BATCH
            while gone := await self._connection.fetchval(
                _SQL["tasks"], policy.tenant, before, most, policy.dry_run
            ):
                total += int(gone)
                if policy.dry_run:
                    break
        return total
