"""Child tasks of a handler. Each is submitted once, and no worker is held while it is awaited."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from holdfast.contracts.tasks.children import ChildOptions, check_child
from holdfast.runtime.journal import Journal, check_digest
from holdfast.runtime.offload import load
from holdfast.runtime.outcome import ChildTaskError
from holdfast.runtime.running_task import RunningTask
from holdfast.runtime.steps import TaskSteps
from holdfast.runtime.stores import TaskStores
from holdfast.spi.tasks.forks import CHILD_STEP
from holdfast.values.checks import check_id
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.errors import NotFoundError
from holdfast.values.identity import Agent
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import MAX_ATTEMPTS, TaskRecord

CHILD = CHILD_STEP

PAGE = 1_000
"""How many children are read at a time."""


class TaskChildren(TaskSteps):
    """The methods of ``TaskContext`` for child tasks.

    ::

        text = await task.call("reader", "chapter 2")
    """

    def __init__(
        self, stores: TaskStores, record: TaskRecord, held: RunningTask, journal: Journal
    ) -> None:
        super().__init__(stores, record, held, journal)
        self._children: dict[str, TaskRecord] | None = None
        self._new_children: set[str] = set()

    @renamed(context_id="session_id")
    async def call(
        self,
        agent: Agent,
        message: str | ChatMessage,
        *,
        name: str | None = None,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
    ) -> Any:
        """Submit a task for an agent, wait for its end, and return its result.

        It is submitted once, however often this handler runs. If it has not ended, the call ends
        this run: no worker holds the task while it waits, and when the child has ended, a worker
        runs the handler again from the start, and this call returns the child's result. A child
        that is ``failed``, ``canceled`` or ``rejected`` raises ``ChildTaskError`` with its reason.

        The child has this task's owner, and a context of its own unless ``session_id`` is given.
        ``name`` is the name of the step; the default is the agent. ::

            text = await task.call("reader", "chapter 2")
        """
        child_id = await self.spawn(
            agent,
            message,
            name=name,
            session_id=session_id,
            metadata=metadata,
            max_attempts=max_attempts,
            run_after=run_after,
        )
        return await self.wait(child_id)

    @renamed(context_id="session_id")
    async def spawn(
        self,
        agent: Agent,
        message: str | ChatMessage,
        *,
        name: str | None = None,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
    ) -> str:
        """Submit a task as ``call`` does, and return its id without waiting for it.

        ::

            child_id = await task.spawn("reader", "chapter 2")
        """
        work = message if isinstance(message, ChatMessage) else ChatMessage.user(message)
        how: ChildOptions = {
            "session_id": session_id,
            "metadata": metadata,
            "max_attempts": max_attempts,
            "run_after": run_after,
        }
        draft = check_child(agent, work, **how)
        key = await self._next(CHILD, str(draft.agent) if name is None else name)
        if stored := self._journal.find(key):
            check_digest(stored, draft.content_digest())
            known: str = stored.result["task_id"]
            return known
        child = await self._stores.tasks.submit_child(self._held.lease, key, agent, work, **how)
        self._new_children.add(child.id)
        self._held.child_agents.add(draft.agent)
        return child.id

    async def wait(self, child_id: str) -> Any:
        """Wait for a child that ``spawn`` submitted, and return its result, as ``call`` does.

        ::

            child_id = await task.spawn("reader", "chapter 2")
            text = await task.wait(child_id)
        """
        child = (await self._all_children()).get(check_id("child_id", child_id))
        if child is None and child_id in self._journal.taken_over(CHILD):
            # Of the task that this one was forked from: it was completed then.
            child = await self._stores.tasks.get(
                child_id, owner=ANY_OWNER, messages_limit=0, artifacts=False
            )
        if child is None and child_id not in self._new_children:
            raise NotFoundError("child", child_id, f"task {self.id!r} has no child {child_id!r}")
        if child is None or not child.terminal:
            await self._park([child_id])
        if child.state is not TaskState.COMPLETED:
            raise ChildTaskError(child.id, str(child.agent), child.state, child.note)
        return await load(self._stores.blobs, child.result)

    async def _all_children(self) -> dict[str, TaskRecord]:
        """Return the children by id, as this run first read them.

        If a child has ended since, the ledger makes the task due again as soon as it is suspended.
        """
        if self._children is None:
            found, cursor = dict[str, TaskRecord](), None
            while True:
                page = await self._stores.tasks.children(
                    self.id, owner=ANY_OWNER, limit=PAGE, cursor=cursor
                )
                found |= {one.id: one for one in page.tasks}
                cursor = page.next_cursor
                if cursor is None:
                    break
            self._children = found
        return self._children
