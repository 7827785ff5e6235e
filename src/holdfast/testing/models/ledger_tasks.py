"""The tasks of the naive ledger: one list, looked through for everything."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, LeaseLostError, NotFoundError
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import Lease, TaskRecord

NEVER = datetime.max.replace(tzinfo=UTC)
DONE = ("completed", "failed", "canceled", "rejected")
ASKING = ("input-required", "auth-required")


@dataclass
class NaiveInbox:
    """A message to a task."""

    id: str
    topic: str
    message: Any
    received: bool = False


@dataclass
class NaiveTask:
    """A task, with all that it holds in lists."""

    id: str
    agent: AgentId
    owner: str
    context: str
    metadata: dict[str, Any]
    key: str
    content: Any
    max_attempts: int
    retry_of: str
    created: datetime
    changed: datetime
    state: str = "submitted"
    note: str = ""
    status: ChatMessage | None = None
    fence: int = 0
    attempts: int = 0
    worker: str = ""
    lease_until: datetime | None = None
    run_after: datetime | None = None
    due: datetime | None = None
    cancel: bool = False
    pause: bool = False
    ask: Any = None
    result: Any = None
    messages: list[ChatMessage] = field(default_factory=list)
    steps: list[list[Any]] = field(default_factory=list)
    chunks: list[dict[str, Any]] = field(default_factory=list)
    log: list[tuple[Any, ...]] = field(default_factory=list)
    push: dict[str, Any] = field(default_factory=dict)
    feedback: dict[str, str] = field(default_factory=dict)
    priority: int = 0
    limit_key: str = ""
    began_with: str = ""
    parent: str = ""
    awaited: bool = False
    waits: int = 0
    topic: str | None = None
    form: Any = None
    inbox: list[NaiveInbox] = field(default_factory=list)
    children: dict[Any, tuple[str, Any]] = field(default_factory=dict)
    """By the step that submitted it: the id of a child, and what it was submitted with."""

    @property
    def adopted(self) -> bool:
        """Whether somebody else runs it."""
        return self.max_attempts == 0


@dataclass
class NaiveDelivery:
    """One event for one push config."""

    task: str
    config: str
    seq: int
    due: datetime
    attempts: int = 0
    error: str = ""
    dead: bool = False

    def plainly(self) -> tuple[Any, ...]:
        """What a machine compares."""
        return (self.config, self.seq, self.attempts, self.error, self.dead)


@dataclass
class NaiveMark:
    """Something to clean up after a task."""

    task: str
    owner: str
    context: str
    kind: str
    ref: str
    due: datetime | None = None

    def plainly(self) -> tuple[str, str]:
        """What a machine compares."""
        return (self.kind, self.ref)


class NaiveTasks:
    """Finding, moving and showing tasks."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.shared = shared
        self.tasks: list[NaiveTask] = shared.table(f"tasks of {tenant}")
        self.said: list[tuple[NaiveTask, ChatMessage]] = shared.table(f"context of {tenant}")
        self.outbox: list[NaiveDelivery] = shared.table(f"outbox of {tenant}")
        self.marks: list[NaiveMark] = shared.table(f"marks of {tenant}")
        self.starts: list[tuple[NaiveTask, datetime]] = shared.table(f"starts of {tenant}")

    def look(self, task_id: str, owner: str | None) -> NaiveTask | None:
        """The task, if it is there for this owner."""
        for task in self.tasks:
            if task.id == task_id and owner in (None, task.owner):
                return task
        return None

    def need(self, task_id: str, owner: str | None) -> NaiveTask:
        """The task, or an error."""
        task = self.look(task_id, owner)
        if task is None:
            raise NotFoundError("task", task_id)
        return task

    def steered(self, task_id: str, owner: str | None) -> NaiveTask:
        """The task, or an error if no worker runs it."""
        task = self.need(task_id, owner)
        if task.adopted:
            raise ConflictError("task", task_id)
        return task

    def held(self, lease: Lease) -> NaiveTask:
        """The task that this lease is still good for."""
        for task in self.tasks:
            if task.id == lease.task_id and task.fence == lease.fence and task.state == "working":
                return task
        raise LeaseLostError("task", lease.task_id)

    def happen(self, task: NaiveTask, kind: str, *what: Any) -> None:
        """Write the timeline, and the outbox."""
        task.log.append((kind, *what))
        if kind in ("transition", "message", "artifact"):
            for config in task.push:
                self.outbox.append(NaiveDelivery(task.id, config, len(task.log), self.shared.now))

    def say(self, task: NaiveTask, message: ChatMessage) -> None:
        """Add a message, unless it is there."""
        for known in task.messages:
            if known.id == message.id:
                if (known.role, known.text) != (message.role, message.text):
                    raise ConflictError("message", message.id)
                return
        task.messages.append(message)
        self.said.append((task, message))
        self.happen(task, "message", message.text)

    def move(
        self,
        task: NaiveTask,
        state: str,
        note: str = "",
        *,
        run_after: datetime | None = None,
        status: ChatMessage | None = None,
        keeps_place: bool = False,
    ) -> None:
        """Change the state."""
        before, task.state, task.note, task.status = task.state, state, note, status
        task.changed, task.run_after = self.shared.now, run_after
        if state == "submitted" and not task.adopted and not keeps_place:
            waits = task.waits > 0 or task.topic is not None
            task.due = max(self.shared.now, run_after or (NEVER if waits else self.shared.now))
        if state != "working":
            task.worker, task.lease_until = "", None
        if state == "paused":
            task.attempts, task.pause = 0, False
        if state in DONE:
            task.cancel = task.pause = False
            self.wake_parent(task)
            for mark in self.marks:
                if mark.task == task.id and mark.kind != "artifact":
                    mark.due = self.shared.now
        self.happen(task, "transition", before, state, task.fence, task.attempts)

    def wake_parent(self, child: NaiveTask) -> None:
        """Count a child that ended or went; the last that is waited for makes its parent due."""
        parent = self.look(child.parent, None)
        if child.awaited and parent is not None and parent.waits:
            child.awaited = False
            parent.waits -= 1
            if not parent.waits and parent.state == "submitted":
                parent.due = self.shared.now

    def stop(self, task: NaiveTask, state: str, note: str, **how: Any) -> None:
        """Leave ``working``, where requests and the limit of attempts have their say."""
        if task.cancel and state != "canceled":
            state, note, how["run_after"] = "canceled", "requested", None
        elif state == "submitted" and task.attempts >= task.max_attempts:
            state, note, how["run_after"] = "failed", "gave up", None
        elif state == "submitted" and task.pause:
            state = "paused"
        if state not in ASKING:
            task.ask = None
        self.move(task, state, note, **how)

    def show(self, task: NaiveTask, *, history: int | None = 0) -> TaskRecord:
        """The task as a caller sees it."""
        messages = task.messages if history is None else task.messages[::-1][:history][::-1]
        return TaskRecord(
            task.id,
            task.context,
            task.agent,
            TaskState(task.state),
            task.created,
            task.changed,
            owner=task.owner,
            note=task.note,
            status_message=task.status,
            messages=list(messages),
            metadata=copy.deepcopy(task.metadata),
            version=len(task.log),
            fence=task.fence,
            attempts=task.attempts,
            max_attempts=task.max_attempts,
            worker=task.worker,
            lease_expires_at=task.lease_until,
            run_after=task.run_after,
            cancel_requested=task.cancel,
            pause_requested=task.pause,
            submit_key=task.key,
            retry_of=task.retry_of,
            priority=task.priority,
            key=task.limit_key,
            result=copy.deepcopy(task.result),
            parent_id=task.parent,
            handler_version=task.began_with,
        )
