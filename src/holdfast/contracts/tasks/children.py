"""Tasks that other tasks submit and wait for."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Any, Protocol, TypedDict, Unpack, runtime_checkable

from holdfast.contracts.tasks.checks import check_attempts, check_lease, check_step
from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.spi.tasks.draft import Draft, check_run_after
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.checks import check_absent_id, check_count, check_id, check_unreserved
from holdfast.values.codec import encode_json
from holdfast.values.content import ChatMessage
from holdfast.values.identity import Agent, AgentId
from holdfast.values.owners import Owner
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import MAX_ATTEMPTS, Lease, TaskPage, TaskRecord
from holdfast.values.tasks.trace import encode_untraced


class ChildOptions(TypedDict):
    """The optional arguments of a child task; its agent and message are given separately."""

    session_id: str | None
    metadata: dict[str, Any] | None
    max_attempts: int
    run_after: datetime | timedelta | None


@runtime_checkable
class ChildLedger(Protocol):
    """Tasks that other tasks submit, called their children.

    A worker submits a child under a step key of its task: the child and the step are stored
    together, so that a handler that runs again finds the child and submits no second one. A parent
    that waits (``transition`` to ``submitted`` with ``children``) stays in the queue, where no
    worker can claim it. The transaction that ends the last child that it waits for also makes the
    parent ready to be claimed. So no wake-up is lost, and no worker is occupied meanwhile.

    Promises:

    - a child has its parent's owner and names its parent
    - a child has a context of its own unless it is given one
    - a child is submitted once under its step key
    - a child under a stored step key with other arguments is a conflict and nothing is written
    - a stale worker submits no child
    - 10 concurrent submits of one child make one
    - a task that was asked to cancel submits no child
    - the children of a task are listed in the order of their ids, page by page
    - a list without children has and counts only tasks that no task submitted
    - contexts that only children have are left out of a list without children
    - another owner's children are not found
    - one tenant never sees another's children
    - a parent that waits is not claimed until all its children have ended
    - a child may end in any way and its parent goes on
    - children that have ended before the parent waits are not waited for
    - a parent that waits only for ended or foreign tasks is due at once
    - the end of a child that races its parent's wait is not lost
    - a child that is deleted is not waited for
    - a parent that was paused while its child ended goes on when it is resumed
    - a parent that waits can be canceled
    - a child in its parent's context does not wait for its parent
    - a parent waits for 1000 children and is due once
    - cancel with children cancels all below a task
    - cancel without children leaves them as they are
    - children are waited for only with submitted
    - children and their parent are still there after a reopen
    """

    @abstractmethod
    async def submit_child(
        self,
        lease: Lease,
        key: StepKey,
        agent: Agent,
        message: ChatMessage,
        *,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
    ) -> TaskRecord:
        """Queue a task as a child of the one under the lease, once for the step key.

        The step's result is ``{"task_id": ...}``. The same key with other arguments raises
        ``ConflictError``; so does a task that was asked to cancel. Without ``session_id`` the child
        gets a new context, so that it can run while its parent runs. ::

            child = await ledger.submit_child(lease, StepKey("w", kind="child"), "writer", message)
        """
        ...

    @abstractmethod
    async def children(
        self, task_id: str, *, owner: Owner = None, limit: int = 50, cursor: str | None = None
    ) -> TaskPage:
        """Return a page of the children of a task, the first submitted first.

        ::

            page = await ledger.children(task.id, limit=100)
        """
        ...


class ChildCalls(LedgerCalls, ChildLedger):
    """Implements ``ChildLedger``: checks the arguments, then calls the engine's storage."""

    async def submit_child(
        self,
        lease: Lease,
        key: StepKey,
        agent: Agent,
        message: ChatMessage,
        *,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
    ) -> TaskRecord:
        """Queue a task as a child of the one under the lease, once for the step key."""
        draft = check_child(
            agent,
            message,
            session_id=session_id,
            metadata=metadata,
            max_attempts=max_attempts,
            run_after=run_after,
        )
        named = encode_json({"task_id": draft.id})
        step = StepDraft(check_step(key, field="key"), named, draft.content_digest(), "")
        return (await self._storage.submit_child(check_lease(lease), step, draft)).load()

    async def children(
        self, task_id: str, *, owner: Owner = None, limit: int = 50, cursor: str | None = None
    ) -> TaskPage:
        """Return a page of the children of a task, the first submitted first."""
        after = "" if cursor is None else check_id("cursor", cursor)
        found = await self._storage.children(
            task_key(task_id, owner), after, check_count("limit", limit)
        )
        tasks = [task.load() for task in found.tasks]
        return TaskPage(tasks, next_cursor=tasks[-1].id if found.more else None)


def check_child(agent: Agent, message: ChatMessage, **how: Unpack[ChildOptions]) -> Draft:
    """Check a child that is to be submitted; its owner is that of its parent.

    >>> how = {"session_id": None, "metadata": None, "max_attempts": 5, "run_after": None}
    >>> str(check_child("writer", ChatMessage.user("hi"), **how).agent)
    'writer'
    """
    return Draft(
        AgentId.parse(agent),
        StoredMessage.of(message),
        check_unreserved("session_id", check_absent_id("session_id", how["session_id"])),
        metadata=encode_untraced(how["metadata"]),
        max_attempts=check_attempts(how["max_attempts"]),
        run_after=check_run_after(how["run_after"]),
    )
