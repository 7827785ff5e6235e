"""Which tenants have work, for a worker of many tenants."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import get_args

from holdfast.kernel.storage.ledger_work import WorkKind, WorkSignal
from holdfast.spi.tasks_work import WorkStorage
from holdfast.values.checks import check_count, check_id, check_seconds
from holdfast.values.errors import InvalidInputError

_KINDS: tuple[WorkKind, ...] = get_args(WorkKind)


class Work(WorkSignal):
    """``WorkSignal`` on any engine.

    ::

        work = Work(PostgresWork(engine))
    """

    def __init__(self, storage: WorkStorage) -> None:
        self._storage = storage

    async def tenants(self, kind: WorkKind = "due", *, limit: int = 100) -> list[str]:
        """The tenants that have work of a kind, in order."""
        if kind not in _KINDS:
            raise InvalidInputError("kind", f"must be one of {', '.join(_KINDS)}")
        return await self._storage.tenants(kind, check_count("limit", limit))

    async def wait(self, *, timeout_seconds: float) -> None:
        """Return when a task may have become due, at the latest after ``timeout_seconds``."""
        await self._storage.wait(check_seconds("timeout_seconds", timeout_seconds))

    def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield when a client may have asked something of a task of this worker."""
        return self._storage.requests(check_id("worker", worker))
