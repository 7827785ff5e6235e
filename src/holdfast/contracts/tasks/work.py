"""Which tenants have work, for a worker of many tenants."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator
from typing import Protocol, get_args, runtime_checkable

from holdfast.spi.tasks.work import WorkKind, WorkStorage
from holdfast.values.checks import check_count, check_id, check_seconds
from holdfast.values.errors import InvalidInputError

_KINDS: tuple[WorkKind, ...] = get_args(WorkKind)


@runtime_checkable
class WorkSignal(Protocol):
    """Notifications about the queues of all tenants; for the operator, not for a tenant.

    A notification is a hint: there may be no work, and a worker that gets none still polls now and
    then.
    """

    @abstractmethod
    async def tenants(self, kind: WorkKind = "due", *, limit: int = 100) -> list[str]:
        """Return the tenants that have work of a kind, in order.

        ::

            for tenant in await state.ops.work.tenants():
                await state.for_tenant(tenant).tasks.claim("worker-1")
        """
        ...

    @abstractmethod
    async def wait(self, *, timeout_seconds: float) -> None:
        """Return when a task may have become due, at the latest after ``timeout_seconds``.

        ::

            await state.ops.work.wait(timeout_seconds=1.0)
        """
        ...

    @abstractmethod
    def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield when a client may have asked to cancel, pause or resume a task of this worker.

        It yields once at the start, for earlier requests. A notification can be lost; the next
        heartbeat of the task returns the request in any case.

        ::

            async for _ in state.ops.work.requests("worker-1"):
                lease = await state.tasks.heartbeat(lease)
        """
        ...


class Work(WorkSignal):
    """``WorkSignal`` on any engine.

    ::

        work = Work(PostgresWork(engine))
    """

    def __init__(self, storage: WorkStorage) -> None:
        self._storage = storage

    async def tenants(self, kind: WorkKind = "due", *, limit: int = 100) -> list[str]:
        """Return the tenants that have work of a kind, in order."""
        if kind not in _KINDS:
            raise InvalidInputError("kind", f"must be one of {', '.join(_KINDS)}")
        return await self._storage.tenants(kind, check_count("limit", limit))

    async def wait(self, *, timeout_seconds: float) -> None:
        """Return when a task may have become due, at the latest after ``timeout_seconds``."""
        await self._storage.wait(check_seconds("timeout_seconds", timeout_seconds))

    def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield when a client may have made a request to a task of this worker."""
        return self._storage.requests(check_id("worker", worker))
