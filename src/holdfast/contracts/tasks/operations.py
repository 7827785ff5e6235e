"""What operators do with many tasks: count, cancel, pause and retry them, and list workers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, Unpack, get_args, runtime_checkable

from holdfast.contracts.tasks.checks import check_note, check_owner
from holdfast.contracts.tasks.filters import TaskWhere, check_filter
from holdfast.contracts.tasks.scope import LedgerCalls
from holdfast.spi.tasks.operations import CountBy, ManyQuery, ManyRequest
from holdfast.values.checks import check_absent_id, check_count, check_flag
from holdfast.values.errors import InvalidInputError
from holdfast.values.ids import new_id
from holdfast.values.owners import Owner
from holdfast.values.tasks.operations import ManyTasks, TaskCounts, WorkerRecord

COUNTED = 100_000
"""How many tasks ``counts`` counts at most, unless the caller passes another limit."""
MAX_COUNTED = 10_000_000
"""The highest limit of ``counts``."""
MANY = 1000
MAX_MANY = 10_000
"""The most tasks that one operation may change."""


@runtime_checkable
class OperationLedger(Protocol):
    """Calls for operators. The filters are those of ``list``.

    Promises:

    - counts gives the number of tasks by state
    - counts gives the number of tasks by agent
    - counts takes the filters of list
    - counts stops at its limit and says so
    - counts of more than ten million tasks is refused
    - versions gives the ids and versions of the tasks that changed last
    - workers gives the tasks that each worker holds and its last heartbeat
    - a worker without tasks is not among the workers
    - cancel_many cancels the tasks that match and no others
    - cancel_many of a running task is a request to its worker
    - pause_many pauses the tasks that match and no others
    - a dry run changes nothing and returns what would be done
    - an operation on many tasks stops at its limit and says so
    - an operation on many tasks leaves out those it cannot be done to
    - retry_many submits each task that matches again, once
    - an operation on many tasks needs a filter
    - another owner's tasks are neither counted nor changed
    - one tenant neither counts nor changes another's tasks
    """

    @abstractmethod
    async def counts(
        self,
        by: CountBy = "state",
        *,
        owner: Owner = None,
        limit: int = COUNTED,
        **where: Unpack[TaskWhere],
    ) -> TaskCounts:
        """Count tasks by ``"state"`` or ``"agent"``, at most ``limit`` of them.

        ::

            found = await ledger.counts(agent="writer")
            print(found.counts.get("failed", 0))
        """
        ...

    @abstractmethod
    async def versions(self, *, owner: Owner = None, limit: int = 100) -> dict[str, int]:
        """Return only the versions, by id, of the tasks whose state changed last.

        ::

            before = await ledger.versions()
        """
        ...

    @abstractmethod
    async def workers(self, *, owner: Owner = None) -> list[WorkerRecord]:
        """Return the workers that hold tasks now, by name.

        ::

            for worker in await ledger.workers():
                print(worker.name, len(worker.task_ids), worker.last_heartbeat_at)
        """
        ...

    @abstractmethod
    async def cancel_many(
        self,
        *,
        owner: Owner = None,
        note: str = "",
        by: str | None = None,
        limit: int = MANY,
        dry_run: bool = False,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks:
        """Cancel the tasks that match and have not ended, up to ``limit``, in one step.

        ::

            print((await ledger.cancel_many(agent="writer", dry_run=True)).matched)
        """
        ...

    @abstractmethod
    async def pause_many(
        self,
        *,
        owner: Owner = None,
        note: str = "",
        by: str | None = None,
        limit: int = MANY,
        dry_run: bool = False,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks:
        """Pause the tasks that match and have not ended, up to ``limit``, in one step.

        ::

            await ledger.pause_many(agent="writer", note="the model is down")
        """
        ...

    @abstractmethod
    async def retry_many(
        self,
        *,
        owner: Owner = None,
        by: str | None = None,
        limit: int = MANY,
        dry_run: bool = False,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks:
        """Retry the tasks that match and have ended, each once, up to ``limit``.

        Each new task starts from the beginning, as by ``retry``. A task that this call has retried
        before is left out, so the call may be repeated.

        ::

            await ledger.retry_many(states=["failed"], agent="writer")
        """
        ...


class OperationCalls(LedgerCalls, OperationLedger):
    """Implements ``OperationLedger``: checks the arguments, then calls the engine's storage."""

    async def counts(
        self,
        by: CountBy = "state",
        *,
        owner: Owner = None,
        limit: int = COUNTED,
        **where: Unpack[TaskWhere],
    ) -> TaskCounts:
        """Count tasks by state or agent."""
        if by not in get_args(CountBy):
            raise InvalidInputError("by", f"must be 'state' or 'agent', not {by!r}")
        wanted = check_filter(owner, **where)
        if check_count("limit", limit) > MAX_COUNTED:
            raise InvalidInputError("limit", f"must be at most {MAX_COUNTED}")
        return await self._storage.counts(by, wanted, limit)

    async def versions(self, *, owner: Owner = None, limit: int = 100) -> dict[str, int]:
        """Return the versions, by id, of the tasks whose state changed last."""
        return await self._storage.versions(check_owner(owner), check_count("limit", limit))

    async def workers(self, *, owner: Owner = None) -> list[WorkerRecord]:
        """Return the workers that hold tasks now, by name."""
        return await self._storage.workers(check_owner(owner))

    async def cancel_many(
        self,
        *,
        owner: Owner = None,
        note: str = "",
        by: str | None = None,
        limit: int = MANY,
        dry_run: bool = False,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks:
        """Cancel the tasks that match."""
        return await self._many(
            "cancel", owner, where, limit=limit, dry_run=dry_run, note=note, by=by
        )

    async def pause_many(
        self,
        *,
        owner: Owner = None,
        note: str = "",
        by: str | None = None,
        limit: int = MANY,
        dry_run: bool = False,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks:
        """Pause the tasks that match."""
        return await self._many(
            "pause", owner, where, limit=limit, dry_run=dry_run, note=note, by=by
        )

    async def retry_many(
        self,
        *,
        owner: Owner = None,
        by: str | None = None,
        limit: int = MANY,
        dry_run: bool = False,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks:
        """Retry the tasks that match."""
        return await self._many("retry", owner, where, limit=limit, dry_run=dry_run, by=by)

    async def _many(
        self,
        what: ManyRequest,
        owner: Owner,
        where: TaskWhere,
        *,
        limit: object,
        dry_run: object,
        by: object,
        note: object = "",
    ) -> ManyTasks:
        wanted, who = check_filter(owner, **where), check_absent_id("by", by)
        most, dry = check_count("limit", limit), check_flag("dry_run", dry_run)
        if most > MAX_MANY:
            raise InvalidInputError("limit", f"must be at most {MAX_MANY}")
        if all(one is None for one in where.values()):
            raise InvalidInputError(
                "where", "must have a filter, such as agent= or states=: it is for many tasks"
            )
        ids = [(new_id(), new_id()) for _ in range(most)] if what == "retry" and not dry else []
        query = ManyQuery(what, wanted, most, check_note("note", note), dry, ids, who)
        return await self._storage.many(query)
