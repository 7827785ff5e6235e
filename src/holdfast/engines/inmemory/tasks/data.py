"""The data structures of the in-memory ledger, and the snapshots that are read from them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from holdfast.spi.tasks.changes import ChangePosition
from holdfast.spi.tasks.records import (
    Extent,
    StoredEvent,
    StoredTask,
    TaskSnapshot,
    WrittenChunk,
)
from holdfast.spi.tasks.stored import (
    StoredChunk,
    StoredFeedback,
    StoredMessage,
    StoredPush,
    StoredStep,
    fitting,
    text_bytes,
)
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.events import StepKey


@dataclass(slots=True)
class Doorbell:
    """Wakes waiters, by name."""

    waiting: dict[str, set[asyncio.Event]] = field(default_factory=dict)

    def ring(self, name: str = "") -> None:
        """Wake all waiters of a name."""
        for event in self.waiting.get(name, ()):
            event.set()

    @contextmanager
    def bell(self, name: str = "") -> Iterator[asyncio.Event]:
        """Yield an event that ``ring`` sets."""
        rung, waiting = asyncio.Event(), self.waiting.setdefault(name, set())
        waiting.add(rung)
        try:
            yield rung
        finally:
            waiting.discard(rung)
            if not waiting and self.waiting.get(name) is waiting:
                del self.waiting[name]


def event_bytes(event: StoredEvent) -> int:
    """Return how many bytes an entry of a timeline takes, as JSON text."""
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
class InboxRow:
    """A message to a running task."""

    topic: str
    body: str
    digest: str
    received: bool = False


@dataclass(slots=True)
class TaskRow(StoredTask):
    """A task with its timeline and five indexes into it.

    ``said`` holds the id of the message that a step's result names. ``chunks`` holds the current
    chunks of each artifact. ``step_chunks`` holds the chunks that a step wrote under a fence, which
    a later attempt restores.
    """

    status: str = ""
    app_version: str = ""
    lease_seconds: float = 0.0
    due_at: datetime | None = None
    ask: StepKey | None = None
    form: str | None = None
    awaited: bool = False
    waits_for: int = 0
    waits_topic: str | None = None

    events: list[StoredEvent] = field(default_factory=list)
    transitions: int = 0
    messages: dict[str, StoredMessage] = field(default_factory=dict, repr=False)
    steps: dict[StepKey, StoredStep] = field(default_factory=dict, repr=False)
    said: dict[StepKey, str] = field(default_factory=dict, repr=False)
    chunks: dict[str, list[WrittenChunk]] = field(default_factory=dict, repr=False)
    step_chunks: dict[tuple[StepKey, int], list[StoredChunk]] = field(
        default_factory=dict, repr=False
    )
    feedback: dict[str, StoredFeedback] = field(default_factory=dict)
    push: dict[str, StoredPush] = field(default_factory=dict)
    inbox: dict[str, InboxRow] = field(default_factory=dict, repr=False)

    def next_in_inbox(self, topic: str) -> InboxRow | None:
        """Return the oldest message of a topic that was not received, or ``None``."""
        waiting = (one for one in self.inbox.values() if not one.received and one.topic == topic)
        return next(waiting, None)

    def last_messages(self, length: int | None) -> list[StoredMessage]:
        """Return the last messages, the newest first."""
        count = len(self.messages) if length is None else length
        return list(islice(reversed(self.messages.values()), count))

    def all_chunks(self) -> list[WrittenChunk]:
        """Return the chunks of all artifacts."""
        return [chunk for held in self.chunks.values() for chunk in held]

    def artifact_bytes(self) -> int:
        """Return how many bytes the artifacts take, as JSON text."""
        chunks = (chunk for chunk, _ in self.all_chunks())
        return sum(text_bytes(chunk.parts) + text_bytes(chunk.metadata) for chunk in chunks)

    def page_bytes(self, extent: Extent) -> int:
        """Return how many bytes of a page the task takes."""
        said = [text_bytes(one.payload) for one in self.last_messages(extent.history_length)]
        status = self.messages[self.status].payload if self.status else ""
        whole = text_bytes(self.metadata) + text_bytes(status) + sum(said)
        whole += text_bytes(self.result or "")
        return whole + (self.artifact_bytes() if extent.artifacts else 0)

    def snapshot(self, extent: Extent | None = None) -> TaskSnapshot:
        """Return the parts that ``extent`` selects, uncopied: use them before the next await."""
        length, artifacts, most = extent or Extent()
        taken = self.artifact_bytes() if artifacts and most is not None else 0
        dropped = most is not None and taken > most
        left = most if most is None or dropped else most - taken
        last = self.last_messages(length)
        fit = last[: fitting((text_bytes(one.payload) for one in last), left)]
        return TaskSnapshot(
            self,
            self.messages[self.status] if self.status else None,
            fit[::-1],
            self.all_chunks() if artifacts and not dropped else (),
            truncated=dropped or len(fit) < len(last),
        )


@dataclass(slots=True)
class ContextRow:
    """A context: its tasks, those that are working, and its messages by task and id."""

    id: str
    owner: str
    created_at: datetime
    tasks: list[str] = field(default_factory=list)
    working: set[str] = field(default_factory=set)
    messages: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Delivery:
    """One event to deliver to one push config; ``number`` grows with the time it was stored."""

    number: str
    seq: int
    due_at: datetime
    attempts: int = 0
    last_error: str = ""
    dead: bool = False


@dataclass(slots=True)
class MarkRow:
    """A cleanup mark; without ``due_at`` it is not due yet."""

    mark: CleanupMark
    owner: str
    session_id: str
    due_at: datetime | None = None


@dataclass(slots=True)
class LedgerData:
    """All tasks of one tenant.

    ``queue`` is sorted by the time a task is due; ``lanes`` holds the deliveries of each push
    config of each task by the event's ``seq``, in order. ``uncopied``: tasks whose messages may not
    all be in the session log of their context. ``cleanup``: the marks of each task by kind and ref,
    also of deleted tasks; ``cleanup_due``: the tasks that have due marks.
    """

    tasks: dict[str, TaskRow] = field(default_factory=dict)
    contexts: dict[tuple[str, str], ContextRow] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    queue: list[tuple[datetime, str]] = field(default_factory=list)
    working: dict[str, None] = field(default_factory=dict)
    lanes: dict[tuple[str, str], dict[int, Delivery]] = field(default_factory=dict)
    uncopied: dict[str, None] = field(default_factory=dict)
    cleanup: dict[str, dict[tuple[str, str], MarkRow]] = field(default_factory=dict)
    cleanup_due: dict[str, None] = field(default_factory=dict)
    prioritized: bool = False
    """Whether any task had a priority."""
    starts: dict[tuple[object, ...], list[datetime]] = field(default_factory=dict)
    """The start times of tasks that count towards a rate limit, by what the limit counts."""
    changes: list[ChangePosition] = field(default_factory=list)
    """All changes of state, in order; also those of deleted tasks."""

    def add_change(self, task_id: str, seq: int) -> None:
        """Number a change of state."""
        self.changes.append(ChangePosition(len(self.changes) + 1, task_id, seq))

    followers: Doorbell = field(default_factory=Doorbell, repr=False)
