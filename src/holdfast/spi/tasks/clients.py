"""What clients do with tasks, as an engine stores it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias

from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import Extent, StoredTask, TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TaskState

Request: TypeAlias = Literal["cancel", "pause", "resume"]


class TaskFilter(NamedTuple):
    """Which tasks are on a page; ``None`` means no condition."""

    owner: str | None
    session_id: str | None
    agent: AgentId | None
    updated_after: datetime | None
    states: frozenset[TaskState] | None
    updated_before: datetime | None = None
    id_prefix: str | None = None
    worker: str | None = None
    text: str | None = None
    """Only tasks whose first message has this text; the case of ASCII letters is ignored."""
    children: bool = True
    """Whether tasks that other tasks submitted are included; only used for pages of tasks."""


class TaskAfter(NamedTuple):
    """The task that a page of tasks comes after."""

    updated_at: datetime
    task_id: str


class TaskQuery(NamedTuple):
    """A page of tasks.

    With ``extent.max_bytes`` the page ends before the first task that does not fit. The size of a
    task includes its metadata, its status message and, if wanted, its first message. The first task
    is always returned.
    """

    wanted: TaskFilter
    after: TaskAfter | None
    limit: int
    extent: Extent
    counted: bool
    oldest_first: bool = False
    first_messages: bool = False


class TaskListing(NamedTuple):
    """The tasks of a page, whether more follow, and the total number of matches if requested."""

    tasks: Sequence[TaskSnapshot]
    more: bool
    total: int | None


class FirstMessage(NamedTuple):
    """A task, its first message, and the current time by the engine's clock.

    Only an adopted task may have no message.
    """

    task: StoredTask
    message: StoredMessage | None
    now: datetime


class ClientStorage(Protocol):
    """The tasks of one tenant, for their clients. The caller checks all arguments.

    Each method is one atomic step. A change of state follows ``holdfast.values.lifecycle``,
    is an event of the task's timeline, and makes a queued task known to workers. A call that needs
    a task raises ``NotFoundError`` if it does not exist or has another owner. ``by`` names the
    caller in all events of a call.
    """

    @abstractmethod
    async def submit(self, draft: Draft) -> TaskSnapshot:
        """Store a task with its first message as ``submitted``, or return that of its submit key.

        If the owner has a task with this ``submit_key``, that task is returned if its digest is the
        same; otherwise ``ConflictError`` (``spi.tasks_conflicts``) is raised. ``retry_of`` names an
        ended task of the owner; raises ``IllegalTransitionError`` if it has not ended. The new task
        gets that task's context unless it names another. Without either it gets the draft's new
        context.
        """

    @abstractmethod
    async def submit_many(self, drafts: Sequence[Draft]) -> list[TaskSnapshot]:
        """Store tasks of one owner as ``submit`` does, all or none. They are queued in this order.

        No draft has ``retry_of`` or push configs. Two with the same submit key are one task.
        """

    @abstractmethod
    async def first_message(self, key: TaskKey) -> FirstMessage | None:
        """Return a task with its first message, or ``None``."""

    @abstractmethod
    async def get(self, key: TaskKey, extent: Extent) -> TaskSnapshot | None:
        """Return a task with the parts that ``extent`` names, or ``None``."""

    @abstractmethod
    async def message_bytes(self, key: TaskKey) -> int:
        """Return how many bytes the messages of a task take as JSON text."""

    @abstractmethod
    async def list_tasks(self, query: TaskQuery) -> TaskListing:
        """Return a page of tasks, by the time of the last change of state and id, descending."""

    @abstractmethod
    async def respond(
        self,
        key: TaskKey,
        answer: StoredMessage,
        result: str,
        form: str | None,
        by: str = "",
    ) -> TaskSnapshot | str:
        """Store the answer to a waiting task. The task becomes ``submitted`` again, or ``paused``.

        ``result`` is stored as the step that the question named. An answer that is already stored
        changes nothing; with another body it raises ``ConflictError``. Raises
        ``IllegalTransitionError`` if the task does not wait. ``form`` is the form that the answer
        was checked against. If the question has another form, nothing is written and that form is
        returned.
        """

    @abstractmethod
    async def request(self, key: TaskKey, what: Request, note: str, by: str = "") -> TaskSnapshot:
        """Apply a request at once, or leave it to the worker that holds the task.

        The worker is notified. A request that was made already changes nothing. ``cancel`` of an
        ended task changes nothing; ``pause`` and ``resume`` raise ``IllegalTransitionError``.
        """
