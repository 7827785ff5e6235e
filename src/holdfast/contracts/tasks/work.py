"""Which tenants have work, for a worker of many tenants."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, get_args, runtime_checkable

from holdfast.spi.tasks.work import ScheduledWork, WorkKind, WorkStorage, WorkSurvey
from holdfast.values.checks import check_count, check_id, check_ids, check_list, check_seconds
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
        """Return the tenants that have work of this kind, in order.

        ::

            for tenant in await state.ops.work.tenants():
                await state.for_tenant(tenant).tasks.claim("worker-1")
        """
        ...

    @abstractmethod
    async def survey(self, *, limit: int = 100, tenants: Sequence[str] | None = None) -> WorkSurvey:
        """Return which tenants have work, for all kinds but deliveries, in one request.

        Up to ``limit`` tenants for each kind, in order. If ``tenants`` is given, only those are
        looked at.

        ::

            found = await state.ops.work.survey()
            for tenant in found.tenants("due"):
                await state.for_tenant(tenant).tasks.claim("worker-1")
        """
        ...

    @property
    @abstractmethod
    def notified(self) -> bool:
        """Whether ``notices`` reports new work of other processes. If not, workers poll more often.

        ::

            pause = 5.0 if state.ops.work.notified else 1.0
        """
        ...

    @abstractmethod
    def notices(self) -> AsyncGenerator[None, None]:
        """Yield when a task may have become due. It yields once at the start.

        ::

            async for _ in state.ops.work.notices():
                await state.tasks.claim("worker-1")
        """
        ...

    @abstractmethod
    async def scheduled(
        self, *, tenants: Sequence[str] | None = None, limit: int = 100
    ) -> ScheduledWork:
        """Return tenants that have due schedules, and the seconds until the next one is due.

        If ``tenants`` is given, only those tenants are looked at. ::

            for tenant in (await state.ops.work.scheduled()).tenants:
                await state.for_tenant(tenant).schedules.run_due()
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
    """Implements ``WorkSignal``: checks the arguments, then calls the engine's storage.

    ::

        work = Work(PostgresWork(engine))
    """

    def __init__(self, storage: WorkStorage) -> None:
        self._storage = storage

    async def tenants(self, kind: WorkKind = "due", *, limit: int = 100) -> list[str]:
        """Return the tenants that have work of this kind, in order."""
        if kind not in _KINDS:
            raise InvalidInputError("kind", f"must be one of {', '.join(_KINDS)}")
        return await self._storage.tenants(kind, check_count("limit", limit))

    async def survey(self, *, limit: int = 100, tenants: Sequence[str] | None = None) -> WorkSurvey:
        """Return which tenants have work, for all kinds but deliveries, in one request."""
        most, named = check_count("limit", limit), None
        if tenants is not None:
            named = [check_id("tenants", one) for one in check_list("tenants", tenants)]
        return await self._storage.survey(most, named)

    @property
    def notified(self) -> bool:
        """Whether ``notices`` reports new work of other processes."""
        return self._storage.notified

    def notices(self) -> AsyncGenerator[None, None]:
        """Yield when a task may have become due."""
        return self._storage.notices()

    async def scheduled(
        self, *, tenants: Sequence[str] | None = None, limit: int = 100
    ) -> ScheduledWork:
        """Return tenants that have due schedules, and the seconds until the next one is due."""
        some = None if tenants is None else check_ids("tenants", tenants)
        return await self._storage.scheduled(some, check_count("limit", limit))

    async def wait(self, *, timeout_seconds: float) -> None:
        """Return when a task may have become due, at the latest after ``timeout_seconds``."""
        await self._storage.wait(check_seconds("timeout_seconds", timeout_seconds))

    def requests(self, worker: str) -> AsyncGenerator[None, None]:
        """Yield when a client may have made a request to a task of this worker."""
        return self._storage.requests(check_id("worker", worker))
