"""The records of tasks in an archive."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from holdfast.spi.archive.records import Record
from holdfast.values.lifecycle import TERMINAL, Actor, TaskState
from holdfast.values.tasks.cleanup import CleanupKind
from holdfast.values.tasks.events import EventKind


class ContextRecord(Record, frozen=True):
    """A context of tasks."""

    owner: str
    id: str
    created_at: datetime


class TaskRecord(Record, frozen=True):
    """A task without its timeline.

    ``status`` is the id of the message of its last change of state, and ``status_seq`` the number
    of that message in the timeline. ``due_at`` orders the queue; a running task returns to that
    position. Without ``due_at`` the task waits for something other than a time.
    """

    id: str
    owner: str
    context_id: str
    agent: str
    created_at: datetime
    state: TaskState
    updated_at: datetime
    max_attempts: int
    version: int
    transitions: int
    metadata: str = "{}"
    submit_key: str = ""
    submit_digest: str = ""
    retry_of: str = ""
    note: str = ""
    status: str = ""
    status_seq: int | None = None
    fence: int = 0
    attempts: int = 0
    worker: str = ""
    lease_expires_at: datetime | None = None
    lease_seconds: float | None = None
    run_after: datetime | None = None
    due_at: datetime | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    ask_kind: str | None = None
    ask_name: str | None = None
    ask_occurrence: int | None = None
    ask_form: str | None = None
    result: str | None = None
    parent_id: str = ""
    awaited: bool = False
    waits_for: int = 0
    waits_topic: str | None = None
    priority: int = 0
    key: str = ""
    copied: bool = False
    handler_version: str = ""
    app_version: str = ""


def meaningful(task: TaskRecord) -> TaskRecord:
    """Return the task without the fields that have no meaning in its state.

    Engines store different values in these fields.
    """
    running = task.max_attempts > 0
    asks = task.ask_kind is not None
    held = running and task.state is TaskState.WORKING
    queued = running and task.state in (TaskState.SUBMITTED, TaskState.WORKING)
    waits = task.state in (TaskState.SUBMITTED, TaskState.PAUSED)
    return msgspec.structs.replace(
        task,
        submit_digest=task.submit_digest if task.submit_key else "",
        lease_expires_at=task.lease_expires_at if held else None,
        lease_seconds=task.lease_seconds if held else None,
        due_at=task.due_at if queued else None,
        ask_name=task.ask_name if asks else None,
        ask_occurrence=task.ask_occurrence if asks else None,
        ask_form=task.ask_form if asks else None,
        waits_for=task.waits_for if waits else 0,
        waits_topic=task.waits_topic if waits else None,
        awaited=task.awaited and task.state not in TERMINAL,
    )


class TaskEventRecord(Record, frozen=True):
    """An entry of a timeline; ``kind`` decides which of the optional fields it has.

    ``place`` is the ordinal of a message in its context, from 1; ``None`` for a message that is not
    one of the context's messages.
    """

    task_id: str
    seq: int
    kind: EventKind
    at: datetime
    actor: Actor
    fence: int
    by_name: str = ""
    number: int | None = None
    from_state: TaskState | None = None
    to_state: TaskState | None = None
    worker: str | None = None
    attempt: int | None = None
    run_after: datetime | None = None
    note: str | None = None
    request: Literal["cancel", "pause", "resume"] | None = None
    message_id: str | None = None
    written_at: datetime | None = None
    place: int | None = None
    step_kind: str | None = None
    step_name: str | None = None
    step_occurrence: int | None = None
    started_at: datetime | None = None
    chunks: int | None = None
    digest: str | None = None
    artifact_id: str | None = None
    append: bool | None = None
    last_chunk: bool | None = None
    name: str | None = None
    metadata: str | None = None
    body: str | None = None
    app_version: str | None = None


class FeedbackRecord(Record, frozen=True):
    """Feedback on a task. The feedback on one task is in the order in which it was given."""

    task_id: str
    id: str
    text: str
    metadata: str
    created_at: datetime
    rating: int | None = None


class InboxRecord(Record, frozen=True):
    """A message to a running task; those of one task are in the order in which they were sent."""

    task_id: str
    id: str
    topic: str
    body: str
    digest: str
    received: bool = False


class PushConfigRecord(Record, frozen=True):
    """A push config of a task."""

    task_id: str
    id: str
    url: str
    token: str
    authentication: str


class DeliveryRecord(Record, frozen=True):
    """An event of a task that is to be delivered to a push config."""

    task_id: str
    config_id: str
    seq: int
    due_at: datetime
    attempts: int = 0
    last_error: str = ""
    dead: bool = False


class CleanupRecord(Record, frozen=True):
    """A cleanup mark: data to delete with a task; without ``due_at``, it is not due yet."""

    task_id: str
    kind: CleanupKind
    ref: str
    agent: str
    owner: str
    context_id: str
    due_at: datetime | None = None
