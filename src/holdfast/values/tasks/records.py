"""What a task ledger returns: tasks, leases, pages, contexts, artifacts and feedback."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from holdfast.values.codec import decode_json, plain
from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.deprecation import warn_deprecated
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TERMINAL, TaskState

LEASE_SECONDS = 30.0
"""The default duration of a lease, from a claim or a heartbeat."""

MAX_ATTEMPTS = 5
"""The default number of claims without progress that a task may have."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What a task has produced under one id, so far.

    >>> Artifact("summary.md", "t1", [], updated_at=datetime(2030, 1, 1)).complete
    False
    """

    id: str
    task_id: str
    parts: list[ContentBlock]
    updated_at: datetime
    name: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    complete: bool = False
    """Whether its last chunk has been written."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task as it is stored.

    Only some methods fill ``messages`` and ``artifacts``. ``version`` is the ``seq`` of its last
    event: ``follow`` from there misses nothing and repeats nothing.

    >>> now = datetime(2030, 1, 1)
    >>> task = TaskRecord("t1", "c1", AgentId("", "writer"), TaskState.COMPLETED, now, now)
    >>> task.terminal
    True
    """

    id: str
    session_id: str
    agent: AgentId
    state: TaskState
    created_at: datetime
    updated_at: datetime
    """When its state last changed; new messages and artifacts do not count."""

    owner: str = ""
    note: str = ""
    """The note of its last change of state: a reason, a traceback."""

    status_message: ChatMessage | None = None
    """The message that came with its last change of state, such as an open question."""

    messages: list[ChatMessage] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    fence: int = 0
    """How often it was claimed. A write with a lower fence, from an earlier lease, is refused."""

    attempts: int = 0
    """How often it was claimed since the last progress."""

    max_attempts: int = MAX_ATTEMPTS
    worker: str = ""
    """The worker that holds it; empty if none does."""

    lease_expires_at: datetime | None = None
    run_after: datetime | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    submit_key: str = ""
    retry_of: str = ""
    """The task that this one retries, resumes or was forked from."""

    result: Any = None
    """What its handler returned, if it is ``completed``: any JSON."""

    parent_id: str = ""
    """The task that submitted it; empty if a client did."""

    truncated: bool = False
    """Whether messages or artifacts were left out because of ``max_bytes``."""

    priority: int = 0
    """0 to 9; higher ones run first."""

    key: str = ""
    """Tasks with the same key share the limits per key of their agent."""

    handler_version: str = ""
    """The version of the handler that it began with; empty if that had none."""

    first_message: ChatMessage | None = None
    """What it began with, if a listing was asked for it."""

    traceparent: str = ""
    """The span that submitted it, as a W3C ``traceparent``; empty if it was not traced."""

    @property
    def adopted(self) -> bool:
        """Whether another system runs it: no worker claims it, and ``max_attempts`` is 0.

        >>> now = datetime(2030, 1, 1)
        >>> TaskRecord("t1", "c1", AgentId("", "writer"), TaskState.WORKING, now, now).adopted
        False
        """
        return self.max_attempts == 0

    @property
    def context_id(self) -> str:
        """Deprecated: use ``session_id``."""
        warn_deprecated("TaskRecord.context_id", "TaskRecord.session_id")
        return self.session_id

    @property
    def terminal(self) -> bool:
        """Whether it has ended.

        >>> now = datetime(2030, 1, 1)
        >>> TaskRecord("t1", "c1", AgentId("", "writer"), TaskState.PAUSED, now, now).terminal
        False
        """
        return self.state in TERMINAL


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a task: every write of a worker needs it.

    The fence decides whether a write is accepted. The lease ends when the task leaves ``working``,
    for example by recovery. It does not end at ``expires_at`` alone: from then on recovery may take
    the task back.

    >>> lease = Lease("t1", fence=2, worker="w1", expires_at=datetime(2030, 1, 1))
    >>> lease.cancel_requested
    False
    """

    task_id: str
    fence: int
    worker: str
    expires_at: datetime
    cancel_requested: bool = False
    """A client requested a cancel: end the work and confirm with a transition to ``canceled``."""

    pause_requested: bool = False
    """A client requested a pause: confirm at the next step with a transition to ``paused``."""


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A task with the lease on it.

    >>> now = datetime(2030, 1, 1)
    >>> task = TaskRecord("t1", "c1", AgentId("", "writer"), TaskState.WORKING, now, now)
    >>> lease = Lease("t1", 1, "w1", now)
    >>> ClaimedTask(task, lease).lease.fence
    1
    """

    task: TaskRecord
    lease: Lease


@dataclass(frozen=True, slots=True)
class Completion:
    """How a task ends as ``completed``: with its last message and its result, any JSON.

    >>> lease = Lease("t1", 1, "w1", datetime(2030, 1, 1))
    >>> Completion(lease, result={"pages": 3}).result
    {'pages': 3}
    """

    lease: Lease
    message: ChatMessage | None = None
    result: Any = None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """One page of a listing; ``next_cursor`` is ``None`` on the last.

    >>> TaskPage([]).next_cursor is None
    True
    """

    tasks: list[TaskRecord]
    next_cursor: str | None = None
    total: int | None = None
    """The total number of matching tasks, if requested."""


@dataclass(frozen=True, slots=True)
class ContextRecord:
    """A conversation that tasks share; ``messages`` only if requested.

    >>> ContextRecord("c1", datetime(2030, 1, 1), tasks=2).tasks
    2
    """

    id: str
    created_at: datetime
    owner: str = ""
    tasks: int = 0
    """How many tasks it has."""

    messages: list[ChatMessage] = field(default_factory=list)
    truncated: bool = False
    """Whether messages were left out because of ``max_bytes``."""


@dataclass(frozen=True, slots=True)
class ContextPage:
    """One page of contexts; ``next_cursor`` is ``None`` on the last.

    >>> ContextPage([]).next_cursor is None
    True
    """

    contexts: list[ContextRecord]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback on a task.

    >>> Feedback("f1", "t1", "well done", datetime(2030, 1, 1), rating=5).rating
    5
    """

    id: str
    task_id: str
    text: str
    created_at: datetime
    rating: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def content_digest(value: Any, *, field: str = "value") -> str:
    """Return a digest of a JSON value: equal for equal values, whatever the order of their keys.

    >>> content_digest({"a": 1, "b": 2}) == content_digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(
        msgspec.json.encode(plain(value, field=field), order="sorted")
    ).hexdigest()


def stored_digest(text: str) -> str:
    """Return the ``content_digest`` of stored JSON text, without checking it again.

    >>> stored_digest('{"b":2,"a":1}') == content_digest({"a": 1, "b": 2})
    True
    """
    return hashlib.sha256(msgspec.json.encode(decode_json(text), order="sorted")).hexdigest()
