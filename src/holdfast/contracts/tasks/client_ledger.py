"""What clients do with tasks: submit, read, answer, cancel, pause and retry them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.tasks.filters import TaskOrder
from holdfast.values.content import ChatMessage
from holdfast.values.identity import Agent
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import Owner
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import MAX_ATTEMPTS, TaskPage, TaskRecord


@runtime_checkable
class ClientLedger(Protocol):
    """Tasks as their clients see them.

    A task belongs to the owner it was submitted for. To every other owner, every method answers as
    if it did not exist. The default of ``owner`` is that of the state: the owner of a view by
    ``state.for_owner()``, else ``ANY_OWNER``, with which the operator finds every task of the
    tenant. ``owner=""`` means only tasks without an owner: those submitted without one.

    Only ``get`` and ``list`` return messages and artifacts; the records of other methods have none.

    Promises:

    - a task comes back as it was submitted
    - a submitted task has its id and context at once and begins with its message
    - tasks without a submit key are never merged
    - the same submit key with the same content is the same task
    - the same submit key with other content is a conflict and nothing is written
    - a session id or an owner that begins with holdfast. is refused
    - neither the order of keys nor the id of the message is content
    - a submit key is its owner's own
    - 20 concurrent submits with one submit key make one task
    - 30 concurrent submits lose no task
    - an unknown task is none
    - get returns all messages and artifacts unless limited
    - a messages_limit of zero is no messages
    - messages_limit takes the last messages
    - max_bytes gives the newest messages that fit beside the artifacts
    - the newest message comes whatever max_bytes is
    - artifacts that do not fit max_bytes are left out, all of them
    - a task of which something was left out says so
    - message_bytes counts what all messages of a task take
    - list gives messages and artifacts only on request
    - a page ends before the task that does not fit max_bytes
    - one task always comes, however large
    - pages of max_bytes follow each other without a gap or a repeat
    - list is newest first, by the last change of state
    - pages follow each other without a gap or a repeat
    - list filters by context
    - list filters by state
    - list filters by agent
    - list filters by the time of the last change of state, inclusively
    - list filters by a time before the last change of state, exclusively
    - list filters by the beginning of an id
    - list filters by the worker that holds a task
    - list filters by a part of the first message, in any case of ASCII letters
    - list gives the oldest first on request
    - list gives the first message of each task on request
    - first messages count towards the max_bytes of a page
    - a filter or an order that is none is refused
    - an empty list of states is an empty page
    - a limit of zero is an empty page
    - the total is counted on request, over all pages
    - a cursor that no listing gave is refused
    - an answer takes a waiting task back to the queue
    - an answer is in the history
    - an answer sets the attempts back
    - the same answer twice is taken once
    - the same answer id with another body is a conflict
    - 10 concurrent answers with one id are taken once
    - of two different answers at once one is taken
    - an answer to a task that asked nothing is refused
    - an answer that is none of the options is refused and the task waits on
    - an answer that does not fit the schema is refused by its path and the task waits on
    - the value of an answer that fits the schema is stored with its step
    - a hostile answer to a question with a schema is refused in time
    - the step of an answer says who gave it
    - cancel of a task that is not running is at once
    - cancel of a running task is requested and confirmed by its worker
    - cancel of a terminal task changes nothing
    - a cancel that is requested twice is requested once
    - pause of a queued task is at once, and it is not claimed
    - pause of a running task is requested and confirmed by its worker
    - pause of a waiting task holds it when the answer comes
    - a pause that is requested twice is requested once
    - resume takes a paused task back to the queue
    - resume withdraws a pause that was only requested
    - resume of a task that is not paused changes nothing
    - a paused task keeps its run_after
    - a terminal task can be neither answered nor paused nor resumed
    - every request is logged with the name of who made it, if one is given
    - retry of a terminal task submits a new one and leaves the old as it was
    - retry of a live task is refused
    - retry with a submit key is done once
    - a submit that names what it retries goes into that task's context
    - another owner's task is not found on any path
    - another owner's task is not in a list
    - the operator finds the tasks of every owner
    - the operator finds a task that was submitted for an owner by its id alone
    - with an empty owner only tasks without an owner are found
    - a task cannot be submitted for any owner
    - one tenant never sees another's tasks
    - every change gives a higher version
    - text and metadata come back exactly, however odd
    - metadata that is not json is refused by its path and nothing is written
    - metadata of more than 1 mib is refused and nothing is written
    - metadata with the key of a stored trace is refused and nothing is written
    - a note of more than 64 kib is refused and nothing is written
    - a negative limit and a max_attempts of zero are refused
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - a task is still there after a reopen
    """

    @abstractmethod
    async def submit(
        self,
        agent: Agent,
        message: ChatMessage,
        *,
        session_id: str | None = None,
        owner: str | None = None,
        metadata: dict[str, Any] | None = None,
        submit_key: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
        retry_of: str | None = None,
        push: Sequence[PushConfig] = (),
        priority: int = 0,
        key: str | None = None,
        by: str | None = None,
    ) -> TaskRecord:
        """Queue a task for an agent, and return it with its id at once.

        ``submit_key`` makes it idempotent for its owner: the same key and content returns the same
        task, the same key with other content raises ``ConflictError``. Content is all arguments
        except the message's id and time, ``push`` and ``by``. ``by`` names who makes the call, here
        and in other methods: the events of the call have it as ``by_name``. Without ``session_id``
        the task gets a new context, or that of ``retry_of``, which must be a terminal task of the
        same owner. Neither ``session_id``, ``owner`` nor ``submit_key`` may begin with
        ``holdfast.``. ``priority`` is from 0 to 9, higher first; tasks with the same ``key`` share
        the limits per key of their agent.

        ::

            task = await ledger.submit("writer", ChatMessage.user("Tides of Brest?"), owner="ana")
        """
        ...

    @abstractmethod
    async def get(
        self,
        task_id: str,
        *,
        owner: Owner = None,
        messages_limit: int | None = None,
        artifacts: bool = True,
        max_bytes: int | None = None,
    ) -> TaskRecord | None:
        """Return a task, or ``None``, with its last ``messages_limit`` messages (default: all).

        ``max_bytes`` bounds its artifacts and messages together, as JSON text: it returns all
        artifacts or none, then the newest messages that fit, but always the newest one. What is
        left out is not read, and the record is ``truncated``.
        ::

            task = await ledger.get(task_id, owner="ana", messages_limit=10)
        """
        ...

    @abstractmethod
    async def message_bytes(self, task_id: str, *, owner: Owner = None) -> int:
        """Return the size of a task's messages as JSON text, in bytes; 0 for an unknown task.

        ::

            if await ledger.message_bytes(task.id) > 1 << 20:
                task = await ledger.get(task.id, messages_limit=10)
        """
        ...

    @abstractmethod
    async def list(
        self,
        *,
        owner: Owner = None,
        session_id: str | None = None,
        states: Collection[TaskState | str] | None = None,
        agent: Agent | None = None,
        updated_after: datetime | None = None,
        updated_before: datetime | None = None,
        id_prefix: str | None = None,
        worker: str | None = None,
        text: str | None = None,
        children: bool = True,
        order: TaskOrder = "newest",
        limit: int = 50,
        cursor: str | None = None,
        messages_limit: int | None = 0,
        first_message: bool = False,
        artifacts: bool = False,
        count: bool = False,
        max_bytes: int | None = None,
    ) -> TaskPage:
        """Return a page of tasks, the latest change of state first.

        A task that changes between two pages moves to the front; all others are returned exactly
        once. ``updated_after`` includes that moment, ``updated_before`` does not. ``worker`` is the
        name of the worker that holds the task. ``text`` is a part of the first message, ASCII
        letters in any case. ``children=False`` leaves out the tasks that other tasks submitted.
        ``order="oldest"`` reverses the order; pass it again with the cursor. ``first_message=True``
        fills ``TaskRecord.first_message``. ``count=True`` returns the number of all matching tasks
        as ``total``. With ``max_bytes`` the page ends before the task that does not fit; the first
        task is always returned, truncated as by ``get`` if necessary.

        ::

            page = await ledger.list(owner="ana", states=["input-required"], limit=20)
            more = await ledger.list(owner="ana", limit=20, cursor=page.next_cursor)
        """
        ...

    @abstractmethod
    async def respond(
        self, task_id: str, message: ChatMessage, *, owner: Owner = None, by: str | None = None
    ) -> TaskRecord:
        """Answer the question of a waiting task, which returns to the queue.

        If the question has options, the text must be one of them, or ``InvalidInputError`` names
        them and the task keeps waiting. If it has a schema, the data of the message, or its text
        read as JSON, must fit; the error has the path of what does not fit. ``by`` says who
        answered; it is stored with the step. Idempotent by the message's id: a retry has no effect,
        whatever the task's state is by then. Raises ``IllegalTransitionError`` if the task waits
        for no answer.

        ::

            await ledger.respond(task.id, ChatMessage.user("Chapter 2"), owner="ana")
        """
        ...

    @abstractmethod
    async def cancel(
        self,
        task_id: str,
        *,
        owner: Owner = None,
        note: str = "",
        children: bool = False,
        by: str | None = None,
    ) -> TaskRecord:
        """Cancel a task: at once if no worker holds it, else by a request to its worker.

        A terminal task stays as it is. ``children=True`` also cancels its children, their children
        and so on, in one step.

        ::

            task = await ledger.cancel(task.id, note="no longer needed")
        """
        ...

    @abstractmethod
    async def pause(
        self, task_id: str, *, owner: Owner = None, note: str = "", by: str | None = None
    ) -> TaskRecord:
        """Pause a task: at once if it is queued, else when it would return to the queue.

        ::

            task = await ledger.pause(task.id)
        """
        ...

    @abstractmethod
    async def resume(
        self, task_id: str, *, owner: Owner = None, note: str = "", by: str | None = None
    ) -> TaskRecord:
        """Resume a paused task, or withdraw a pause that was only requested.

        ::

            task = await ledger.resume(task.id)
        """
        ...

    @abstractmethod
    async def retry(
        self,
        task_id: str,
        *,
        owner: Owner = None,
        submit_key: str | None = None,
        by: str | None = None,
    ) -> TaskRecord:
        """Submit the work of a terminal task again, as a new task of the same owner and context.

        It is a fresh start: it begins with a copy of the first message, under a new id, and takes
        over no steps. ``resume_failed`` continues from the last stored step.

        ::

            again = await ledger.retry(failed.id)
        """
        ...
