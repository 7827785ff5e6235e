"""What the in-memory ledger keeps: rows of its own, turned into records when they are read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TypeAlias

from holdfast.kernel.core.codec import decode_json
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.lifecycle import Actor, TaskState
from holdfast.kernel.storage.ledger_cleanup import CleanupMark
from holdfast.kernel.storage.ledger_events import (
    EventBody,
    StepKey,
    TaskEvent,
    TaskRequest,
    Transition,
)
from holdfast.kernel.storage.ledger_records import Artifact, TaskRecord
from holdfast.kernel.storage.ledger_replay import assemble
from holdfast.kernel.storage.ledger_stored import (
    StoredChunk,
    StoredFeedback,
    StoredMessage,
    StoredPush,
    StoredStep,
    fitting,
    text_bytes,
)

StoredBody: TypeAlias = Transition | TaskRequest | StoredMessage | StoredStep | StoredChunk


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One entry of a timeline; its place in the list is its ``seq``, less one."""

    at: datetime
    by: Actor
    fence: int
    body: StoredBody


def event_bytes(event: StoredEvent) -> int:
    """How many bytes an entry takes, as JSON text."""
    match event.body:
        case StoredMessage() as message:
            return text_bytes(message.payload)
        case StoredStep() as step:
            return text_bytes(step.result)
        case StoredChunk() as chunk:
            return text_bytes(chunk.parts) + text_bytes(chunk.metadata)
        case _:
            return 0


@dataclass(slots=True)
class TaskRow:
    """A task: what never changes, what changes, and its timeline with four indexes into it.

    ``chunks`` are those that an artifact is made of now; ``step_chunks`` those written in a step
    under a fence, for a later attempt to put back.
    """

    id: str
    context_id: str
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
    status: str = ""
    fence: int = 0
    attempts: int = 0
    worker: str = ""
    lease_expires_at: datetime | None = None
    lease_seconds: float = 0.0
    run_after: datetime | None = None
    due_at: datetime | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    ask: StepKey | None = None

    events: list[StoredEvent] = field(default_factory=list)
    transitions: int = 0
    messages: dict[str, tuple[int, StoredMessage]] = field(default_factory=dict, repr=False)
    steps: dict[StepKey, StoredStep] = field(default_factory=dict, repr=False)
    chunks: dict[str, list[tuple[StoredChunk, datetime]]] = field(default_factory=dict, repr=False)
    step_chunks: dict[tuple[StepKey, int], list[StoredChunk]] = field(
        default_factory=dict, repr=False
    )
    feedback: dict[str, StoredFeedback] = field(default_factory=dict)
    push: dict[str, StoredPush] = field(default_factory=dict)

    def load_message(self, message_id: str) -> ChatMessage:
        """One message, made anew."""
        seq, message = self.messages[message_id]
        return message.load(seq)

    def last_messages(self, length: int | None) -> list[tuple[int, StoredMessage]]:
        """The last messages, the newest first."""
        count = len(self.messages) if length is None else length
        return list(islice(reversed(self.messages.values()), count))

    def artifact_bytes(self) -> int:
        """How many bytes the artifacts take, as JSON text."""
        chunks = (chunk for one in self.chunks.values() for chunk, _ in one)
        return sum(text_bytes(chunk.parts) + text_bytes(chunk.metadata) for chunk in chunks)

    def page_bytes(self, *, history_length: int | None, artifacts: bool) -> int:
        """How many bytes of a page the task takes."""
        said = [text_bytes(one.payload) for _, one in self.last_messages(history_length)]
        status = self.messages[self.status][1].payload if self.status else ""
        whole = text_bytes(self.metadata) + text_bytes(status) + sum(said)
        return whole + (self.artifact_bytes() if artifacts else 0)

    def load_artifact(self, artifact_id: str) -> Artifact:
        """An artifact, put together from its chunks."""
        chunks = ((chunk.load(), at) for chunk, at in self.chunks[artifact_id])
        return assemble(artifact_id, chunks, task_id=self.id)

    def load_event(self, seq: int) -> TaskEvent:
        """An entry of the timeline, made anew."""
        stored = self.events[seq - 1]
        body: EventBody
        match stored.body:
            case StoredMessage() as message:
                body = message.load(seq)
            case StoredStep() as step:
                body = step.load(self.id)
            case StoredChunk() as chunk:
                body = chunk.load()
            case frozen:
                body = frozen
        return TaskEvent(self.id, seq, stored.at, stored.by, stored.fence, body)

    def load(
        self,
        *,
        history_length: int | None = 0,
        artifacts: bool = False,
        max_bytes: int | None = None,
    ) -> TaskRecord:
        """The task, made anew."""
        taken = self.artifact_bytes() if artifacts and max_bytes is not None else 0
        dropped = max_bytes is not None and taken > max_bytes
        left = max_bytes if max_bytes is None or dropped else max_bytes - taken
        last = self.last_messages(history_length)
        fit = last[: fitting((text_bytes(one.payload) for _, one in last), left)]
        return TaskRecord(
            self.id,
            self.context_id,
            self.agent,
            self.state,
            self.created_at,
            self.updated_at,
            owner=self.owner,
            note=self.note,
            status_message=self.load_message(self.status) if self.status else None,
            messages=[message.load(seq) for seq, message in reversed(fit)],
            artifacts=(
                [self.load_artifact(one) for one in self.chunks]
                if artifacts and not dropped
                else []
            ),
            metadata=decode_json(self.metadata),
            version=len(self.events),
            fence=self.fence,
            attempts=self.attempts,
            max_attempts=self.max_attempts,
            worker=self.worker,
            lease_expires_at=self.lease_expires_at,
            run_after=self.run_after,
            cancel_requested=self.cancel_requested,
            pause_requested=self.pause_requested,
            submit_key=self.submit_key,
            retry_of=self.retry_of,
            truncated=dropped or len(fit) < len(last),
        )


@dataclass(slots=True)
class ContextRow:
    """A context: its tasks, those at work, and its messages by task and id."""

    id: str
    owner: str
    created_at: datetime
    tasks: list[str] = field(default_factory=list)
    working: set[str] = field(default_factory=set)
    messages: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Delivery:
    """One event on its way to one push config."""

    id: str
    seq: int
    due_at: datetime
    attempts: int = 0
    last_error: str = ""
    dead: bool = False


@dataclass(slots=True)
class MarkRow:
    """A cleanup mark; one without ``due_at`` is not due."""

    mark: CleanupMark
    owner: str
    context_id: str
    due_at: datetime | None = None


@dataclass(slots=True)
class LedgerData:
    """All tasks of one tenant.

    ``queue`` is sorted by the moment a task is due; ``lanes`` holds the deliveries of each push
    config of each task, in order. ``uncopied``: tasks whose messages may not all be in the session
    log of their context. ``cleanup``: the marks of each task by kind and ref, of tasks that are
    gone too; ``cleanup_due``: the tasks of which some are due.
    """

    tasks: dict[str, TaskRow] = field(default_factory=dict)
    contexts: dict[tuple[str, str], ContextRow] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    queue: list[tuple[datetime, str]] = field(default_factory=list)
    working: dict[str, None] = field(default_factory=dict)
    lanes: dict[tuple[str, str], dict[str, Delivery]] = field(default_factory=dict)
    uncopied: dict[str, None] = field(default_factory=dict)
    cleanup: dict[str, dict[tuple[str, str], MarkRow]] = field(default_factory=dict)
    cleanup_due: dict[str, None] = field(default_factory=dict)
    waiters: dict[str, set[asyncio.Event]] = field(default_factory=dict, repr=False)
