"""``HoldfastTaskStore``: the SDK's ``TaskStore``."""

from __future__ import annotations

from a2a.server.context import ServerCallContext
from a2a.server.owner_resolver import OwnerResolver, resolve_user_scope
from a2a.server.tasks.task_store import TaskStore
from a2a.types import a2a_pb2 as pb

from holdfast.adapters.a2a.changes import is_change, of_task
from holdfast.adapters.a2a.messages import from_record
from holdfast.adapters.a2a.tasks import LedgerTasks
from holdfast.blocking import Portal
from holdfast.values.errors import AlreadyExistsError, VersionConflictError
from holdfast.values.identity import AgentId
from holdfast.wiring.state import State

ATTEMPTS = 20
"""How often a save reads the task again because another save changed it meanwhile."""


class HoldfastTaskStore(TaskStore):
    """The tasks of an agent as adopted tasks of ``state.tasks``, for ``DefaultRequestHandler``.

    Every call is for the owner that ``owner_resolver`` returns. A save stores what has changed; of
    two at once the later one wins, as in the SDK's own stores. Use ``HoldfastVersionedTaskStore``
    if several replicas serve one agent. Any thread and event loop may use it. ::

        handler = DefaultRequestHandler(executor, HoldfastTaskStore(state, agent="writer"), card)
    """

    def __init__(
        self,
        state: State | Portal,
        *,
        agent: str = "a2a",
        owner_resolver: OwnerResolver = resolve_user_scope,
    ) -> None:
        self._tasks = LedgerTasks(state, str(AgentId.parse(agent)), owner_resolver)

    async def save(self, task: pb.Task, context: ServerCallContext) -> None:
        """Store a task, or what has changed of it."""
        await self._tasks.run(self._save(task, self._tasks.owner(context)))

    async def get(self, task_id: str, context: ServerCallContext) -> pb.Task | None:
        """Return a task of the caller, or ``None``."""
        found = await self._tasks.run(self._tasks.read(task_id, self._tasks.owner(context)))
        return None if found is None else from_record(found, task_id)

    async def list(
        self, params: pb.ListTasksRequest, context: ServerCallContext
    ) -> pb.ListTasksResponse:
        """Return a page of the caller's tasks."""
        return await self._tasks.run(self._tasks.list(params, self._tasks.owner(context)))

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task of the caller. Does nothing if there is no such task."""
        await self._tasks.run(self._tasks.delete(task_id, self._tasks.owner(context)))

    async def _save(self, task: pb.Task, owner: str) -> None:
        for last in (*[False] * (ATTEMPTS - 1), True):
            try:
                return await self._save_once(task, owner)
            except VersionConflictError:
                if last:
                    raise
            except AlreadyExistsError:
                # Added since it was read, unless the id is that of another owner or agent.
                if last or await self._tasks.read(task.id, owner) is None:
                    raise
        return None

    async def _save_once(self, task: pb.Task, owner: str) -> None:
        stored = await self._tasks.read(task.id, owner)
        if stored is None:
            await self._tasks.add(task, owner)
            return
        reports = of_task(task, stored)
        if is_change(reports, stored):
            await self._tasks.ledger.record(
                stored.id, reports, owner=owner, expected_version=stored.version
            )
