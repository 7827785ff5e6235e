"""``HoldfastVersionedTaskStore``: the SDK's ``VersionedTaskStore``, for several replicas."""

from __future__ import annotations

from collections.abc import Sequence

from a2a.server.cluster import ConcurrentTaskModificationError, StoredTask, VersionedTaskStore
from a2a.server.cluster.version import TaskVersion
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.owner_resolver import OwnerResolver, resolve_user_scope
from a2a.types import a2a_pb2 as pb

from holdfast.adapters.a2a.changes import of_artifact, of_status, of_task
from holdfast.adapters.a2a.messages import from_record, to_message, to_status
from holdfast.adapters.a2a.tasks import LedgerTasks
from holdfast.adapters.keys import id_of
from holdfast.blocking import Portal
from holdfast.values.errors import (
    AlreadyExistsError,
    IllegalTransitionError,
    NotFoundError,
    VersionConflictError,
)
from holdfast.values.identity import AgentId
from holdfast.values.tasks.records import TaskRecord
from holdfast.values.tasks.reports import Report
from holdfast.wiring.state import State


class HoldfastVersionedTaskStore(VersionedTaskStore):
    """The tasks of an agent as adopted tasks of ``state.tasks``, with compare-and-set by version.

    Saving a status or an artifact costs one round trip, however large the task is; saving a whole
    task costs two.
    Together with ``HoldfastEventStream`` any number of replicas serve one agent. Any thread and
    event loop may use it. ::

        handler = DefaultRequestHandler(
            executor,
            HoldfastVersionedTaskStore(state, agent="writer"),
            card,
            event_stream=HoldfastEventStream(state),
        )
    """

    def __init__(
        self,
        state: State | Portal,
        *,
        agent: str = "a2a",
        owner_resolver: OwnerResolver = resolve_user_scope,
    ) -> None:
        self._tasks = LedgerTasks(state, str(AgentId.parse(agent)), owner_resolver)

    async def save(
        self,
        task: pb.Task,
        *,
        event: Event | None = None,
        prev: pb.Task | None = None,  # noqa: ARG002 - the SDK changes it in place
        prev_version: TaskVersion,
        context: ServerCallContext,
    ) -> TaskVersion:
        """Store what an event has changed, if the task has the version that it was derived from."""
        owner = self._tasks.owner(context)
        try:
            return await self._tasks.run(self._save(task, event, _number(prev_version), owner))
        except (AlreadyExistsError, IllegalTransitionError, NotFoundError, VersionConflictError):
            raise ConcurrentTaskModificationError(task.id) from None

    async def get(self, task_id: str, context: ServerCallContext) -> StoredTask | None:
        """Return a task of the caller with its version, or ``None``."""
        found = await self._tasks.run(self._tasks.read(task_id, self._tasks.owner(context)))
        if found is None:
            return None
        return StoredTask(from_record(found, task_id), TaskVersion(found.version))

    async def list(
        self, params: pb.ListTasksRequest, context: ServerCallContext
    ) -> pb.ListTasksResponse:
        """Return a page of the caller's tasks."""
        return await self._tasks.run(self._tasks.list(params, self._tasks.owner(context)))

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task of the caller. Does nothing if there is no such task."""
        await self._tasks.run(self._tasks.delete(task_id, self._tasks.owner(context)))

    async def _save(
        self, task: pb.Task, event: Event | None, version: int, owner: str
    ) -> TaskVersion:
        stored = None
        if isinstance(event, pb.TaskStatusUpdateEvent) and event.HasField("metadata"):
            stored = await self._tasks.read(task.id, owner)
        if task.status.state == pb.TASK_STATE_CANCELED:
            return await self._record(task, _cancel(task, event, stored), None, owner)
        if not version:
            return TaskVersion((await self._tasks.add(task, owner)).version)
        match event:
            case pb.TaskStatusUpdateEvent():
                reports = of_status(event, task, stored)
            case pb.TaskArtifactUpdateEvent():
                reports = of_artifact(event, task)
            case _:
                stored = await self._tasks.read(task.id, owner)
                if stored is None or stored.version != version:
                    raise ConcurrentTaskModificationError(task.id)
                reports = of_task(task, stored)
        return await self._record(task, reports, version, owner)

    async def _record(
        self, task: pb.Task, reports: Sequence[Report], version: int | None, owner: str
    ) -> TaskVersion:
        return TaskVersion(
            await self._tasks.ledger.record(
                id_of(task.id), reports, owner=owner, expected_version=version
            )
        )


def _cancel(task: pb.Task, event: Event | None, stored: TaskRecord | None) -> list[Report]:
    if isinstance(event, pb.TaskStatusUpdateEvent):
        return of_status(event, task, stored)
    said = to_message(task.status.message) if task.status.HasField("message") else None
    return [to_status(task.status, said)]


def _number(version: TaskVersion) -> int:
    value = version._value  # noqa: SLF001 - the SDK's own stores read it
    if not isinstance(value, int):
        raise TypeError(f"prev_version: must be one that this store returned, not {version!r}")
    return value
