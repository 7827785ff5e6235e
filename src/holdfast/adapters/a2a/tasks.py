"""The tasks of the SDK in the ledger: the code that the stores of this adapter share."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.owner_resolver import OwnerResolver
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import (
    ListTasksCursor,
    decode_list_tasks_cursor,
    decode_page_token,
    encode_list_tasks_cursor,
)

from holdfast.adapters.a2a.changes import metadata_of, of_task
from holdfast.adapters.a2a.messages import NO_TIME, STATES, at, from_record
from holdfast.adapters.keys import id_of, text_of
from holdfast.blocking import Portal
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.values.cursors import encode_cursor
from holdfast.values.tasks.records import TaskRecord
from holdfast.wiring.state import State

T = TypeVar("T")


class LedgerTasks:
    """The adopted tasks of one agent in a ledger, by owner and the SDK's id.

    ::

        tasks = LedgerTasks(state, "writer", resolve_user_scope)
    """

    def __init__(self, state: State | Portal, agent: str, resolver: OwnerResolver) -> None:
        self.portal = state if isinstance(state, Portal) else Portal(state)
        self._agent = agent
        self._resolver = resolver

    @property
    def ledger(self) -> TaskLedger:
        """The ledger. Use it only on the event loop of the state."""
        return self.portal.state.tasks

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a call on the event loop of the state."""
        return await self.portal.arun(work)

    def owner(self, context: ServerCallContext) -> str:
        """Return the owner of a call; a user without a name gets the tasks that have no owner."""
        name = self._resolver(context)
        return id_of(name) if name else ""

    async def read(self, task_id: str, owner: str) -> TaskRecord | None:
        """Return the ledger's record of a task; ``None`` unless this adapter stored the task."""
        found = await self.ledger.get(id_of(task_id), owner=owner)
        return found if found is not None and self._is_ours(found) else None

    async def add(self, task: pb.Task, owner: str) -> TaskRecord:
        """Store a new task and return its record."""
        return await self.ledger.adopt(
            id_of(task.id),
            agent=self._agent,
            owner=owner,
            session_id=id_of(task.context_id) if task.context_id else None,
            metadata=metadata_of(task),
            reports=of_task(task, None),
        )

    async def delete(self, task_id: str, owner: str) -> None:
        """Delete a task with all its data. Does nothing if there is no such task."""
        if await self.read(task_id, owner) is not None:
            await self.ledger.delete(id_of(task_id), owner=owner)

    async def list(self, params: pb.ListTasksRequest, owner: str) -> pb.ListTasksResponse:
        """Return a page of tasks, the newest status first; tasks without a timestamp are last."""
        size = params.page_size or DEFAULT_LIST_TASKS_PAGE_SIZE
        after = None
        if params.HasField("status_timestamp_after"):
            # A time is stored in microseconds: the first of them that is not before this one.
            after = at(params.status_timestamp_after.ToNanoseconds() + 999)
        token = params.page_token
        cursor = await self._cursor(token, owner) if token else None
        page = await self.ledger.list(
            owner=owner,
            agent=self._agent,
            session_id=id_of(params.context_id) if params.context_id else None,
            states=[STATES[params.status]] if params.status else None,
            updated_after=after,
            limit=size,
            cursor=cursor,
            messages_limit=None,
            artifacts=True,
            count=True,
        )
        tasks = [from_record(one, text_of(one.id)) for one in page.tasks]
        following = None
        if page.next_cursor is not None:
            status = tasks[-1].status
            time = status.timestamp.ToNanoseconds() if status.HasField("timestamp") else None
            following = encode_list_tasks_cursor(ListTasksCursor(time, tasks[-1].id))
        return pb.ListTasksResponse(
            next_page_token=following, tasks=tasks, total_size=page.total, page_size=size
        )

    async def _cursor(self, token: str, owner: str) -> str:
        """Return the ledger's cursor for a page token."""
        found = decode_list_tasks_cursor(token)
        if found is not None:
            moment = NO_TIME if found.timestamp_ns is None else at(found.timestamp_ns)
            return encode_cursor(moment, id_of(found.task_id))
        # One of the SDK before 1.3, which names the first task of the page.
        first = await self.read(decode_page_token(token), owner)
        if first is None:
            raise InvalidParamsError(message=f"Invalid page token: {token}")
        return encode_cursor(first.updated_at, first.id + "!")

    def _is_ours(self, record: TaskRecord) -> bool:
        return record.adopted and str(record.agent) == self._agent
