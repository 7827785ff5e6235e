"""Durable tasks as an engine stores and returns them: checked, their JSON as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple, TypeAlias, cast

from holdfast.spi.tasks.stored import (
    StoredChunk,
    StoredMessage,
    StoredPush,
    StoredStep,
)
from holdfast.values.codec import decode_json
from holdfast.values.content import ChatMessage
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import Actor, TaskState
from holdfast.values.stored_messages import messages_from_rows
from holdfast.values.tasks.events import EventBody, TaskEvent, TaskRequest, Transition
from holdfast.values.tasks.push import OutboxEntry
from holdfast.values.tasks.records import Artifact, Lease, TaskRecord
from holdfast.values.tasks.replay import assemble
from holdfast.values.tasks.trace import TRACE_KEY, take_traceparent

StoredBody: TypeAlias = Transition | TaskRequest | StoredMessage | StoredStep | StoredChunk
MessageRow: TypeAlias = tuple[str, datetime, str, int | None]
"""A ``StoredMessage``, or the same as a plain tuple, which is faster to make."""
WrittenChunk: TypeAlias = tuple[StoredChunk, datetime]
"""A chunk of an artifact, and when it was written."""


class TaskKey(NamedTuple):
    """A task and the owner that asks for it. ``None`` is the operator, who sees all tasks."""

    task_id: str
    owner: str | None


class ContextKey(NamedTuple):
    """The key of a context. Two owners may use the same id for different contexts."""

    owner: str
    session_id: str


class Extent(NamedTuple):
    """Which parts of a task are read.

    These are the last ``history_length`` messages (``None``: all), and all artifacts or none.
    ``max_bytes`` limits both together, as JSON text. Artifacts that do not fit are left out. Then
    the newest messages that fit in the rest are read, but always at least the newest one.
    """

    history_length: int | None = 0
    artifacts: bool = False
    max_bytes: int | None = None


@dataclass(slots=True)
class StoredTask:
    """What an engine stores of a task, apart from its timeline.

    >>> now = datetime(2030, 1, 1)
    >>> StoredTask("t1", "c1", "", AgentId("", "writer"), "{}", 5, "", "", now, now).state.value
    'submitted'
    """

    id: str
    session_id: str
    owner: str
    agent: AgentId
    metadata: str
    max_attempts: int
    submit_key: str
    retry_of: str
    created_at: datetime
    updated_at: datetime
    state: TaskState = TaskState.SUBMITTED
    note: str = ""
    version: int = 0
    fence: int = 0
    attempts: int = 0
    worker: str = ""
    lease_expires_at: datetime | None = None
    run_after: datetime | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    priority: int = 0
    key: str = ""
    result: str | None = None
    parent_id: str = ""
    handler_version: str = ""

    @property
    def adopted(self) -> bool:
        """Whether another system runs the task: then its ``max_attempts`` is 0."""
        return self.max_attempts == 0


def lease_on(task: StoredTask) -> Lease:
    """Return the lease on a task that is ``working``.

    >>> from dataclasses import replace
    >>> now = datetime(2030, 1, 1)
    >>> task = StoredTask("t1", "c1", "", AgentId("", "writer"), "{}", 5, "", "", now, now)
    >>> lease_on(replace(task, worker="w1", fence=2, lease_expires_at=now)).fence
    2
    """
    return Lease(
        task.id,
        task.fence,
        task.worker,
        cast("datetime", task.lease_expires_at),
        cancel_requested=task.cancel_requested,
        pause_requested=task.pause_requested,
    )


class TaskSnapshot(NamedTuple):
    """A task as it was read, with the message of its last change of state.

    ``messages`` and ``chunks`` are those that were asked for: messages in order, the chunks of an
    artifact next to each other, artifacts in the order they were begun.

    >>> now = datetime(2030, 1, 1)
    >>> task = StoredTask("t1", "c1", "", AgentId("", "writer"), '{"a": 1}', 5, "", "", now, now)
    >>> TaskSnapshot(task).load().metadata
    {'a': 1}
    """

    task: StoredTask
    status: StoredMessage | None = None
    messages: Sequence[MessageRow] = ()
    chunks: Sequence[WrittenChunk] = ()
    truncated: bool = False
    first: StoredMessage | None = None

    def load(self) -> TaskRecord:
        """Return a new record of the task, as agents read it."""
        task = self.task
        metadata = decode_json(task.metadata)
        return TaskRecord(
            task.id,
            task.session_id,
            task.agent,
            task.state,
            task.created_at,
            task.updated_at,
            owner=task.owner,
            note=task.note,
            status_message=None if self.status is None else self.status.load(),
            messages=load_messages(self.messages),
            artifacts=load_artifacts(task.id, self.chunks) if self.chunks else [],
            metadata=metadata,
            version=task.version,
            fence=task.fence,
            attempts=task.attempts,
            max_attempts=task.max_attempts,
            worker=task.worker,
            lease_expires_at=task.lease_expires_at,
            run_after=task.run_after,
            cancel_requested=task.cancel_requested,
            pause_requested=task.pause_requested,
            submit_key=task.submit_key,
            retry_of=task.retry_of,
            result=None if task.result is None else decode_json(task.result),
            parent_id=task.parent_id,
            truncated=self.truncated,
            priority=task.priority,
            key=task.key,
            handler_version=task.handler_version,
            first_message=None if self.first is None else self.first.load(),
            traceparent=take_traceparent(metadata) if TRACE_KEY in metadata else "",
        )


def load_messages(rows: Iterable[MessageRow]) -> list[ChatMessage]:
    """Return new messages, as agents read them.

    >>> body = '{"v":1,"role":"user","content":[{"type":"text","text":"hi"}]}'
    >>> load_messages([("m1", datetime(2030, 1, 1), body, 2)])[0].text
    'hi'
    """
    return messages_from_rows((body, key, at, seq) for key, at, body, seq in rows)


def load_artifacts(task_id: str, chunks: Iterable[WrittenChunk]) -> list[Artifact]:
    """Return the artifacts that the chunks form, in the order of the chunks.

    >>> load_artifacts("t1", [])
    []
    """
    return [
        assemble(key, [(chunk.load(), at) for chunk, at in group], task_id=task_id)
        for key, group in groupby(chunks, key=lambda one: one[0].artifact_id)
    ]


class StoredEvent(NamedTuple):
    """One entry of a timeline.

    >>> event = StoredEvent(1, datetime(2030, 1, 1), Actor.CLIENT, 0, TaskRequest("pause"))
    >>> event.load("t1").kind
    'request'
    """

    seq: int
    at: datetime
    by: Actor
    fence: int
    body: StoredBody
    by_name: str = ""

    def load(self, task_id: str) -> TaskEvent:
        """Return a new event, as agents read it."""
        body: EventBody
        match self.body:
            case StoredMessage() | StoredChunk() as text:
                body = text.load()
            case StoredStep() as step:
                body = step.load(task_id)
            case frozen:
                body = frozen
        return TaskEvent(task_id, self.seq, self.at, self.by, self.fence, body, self.by_name)


class EntryKey(NamedTuple):
    """The key of an outbox entry: an event of a task that is to be delivered to a push config.

    >>> EntryKey("t1", "p1", 4).id
    't1/4/p1'
    """

    task_id: str
    config_id: str
    seq: int

    @property
    def id(self) -> str:
        """The entry's id in the outbox."""
        return f"{self.task_id}/{self.seq}/{self.config_id}"


class StoredEntry(NamedTuple):
    """An entry of the outbox with its event and its push config."""

    task_id: str
    owner: str
    config: StoredPush
    event: StoredEvent
    due_at: datetime
    attempts: int
    last_error: str
    dead: bool

    def load(self) -> OutboxEntry:
        """Return a new entry for the process that delivers it."""
        return OutboxEntry(
            EntryKey(self.task_id, self.config.id, self.event.seq).id,
            self.config.load(),
            self.event.load(self.task_id),
            self.due_at,
            attempts=self.attempts,
            last_error=self.last_error,
            dead=self.dead,
            owner=self.owner,
        )
