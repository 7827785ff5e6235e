"""What two ledgers must agree on: their answers without the ids and times that each has its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from holdfast.testing.models.ledger_linked import NAMED
from holdfast.values.content import ChatMessage, text_of
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.events import (
    ArtifactChunk,
    StepRecord,
    TaskEvent,
    TaskRequest,
    Transition,
)
from holdfast.values.tasks.push import OutboxEntry
from holdfast.values.tasks.records import (
    Artifact,
    ClaimedTask,
    ContextPage,
    ContextRecord,
    Feedback,
    Lease,
    TaskPage,
    TaskRecord,
)


def plainly(value: Any) -> Any:
    """An answer as plain values; what a naive model says is plain already."""
    if isinstance(value, list):
        return [plainly(one) for one in value]
    if hasattr(value, "plainly"):
        return value.plainly()
    view = _VIEWS.get(type(value))
    return value if view is None else view(value)


def _task(task: TaskRecord) -> tuple[Any, ...]:
    status = task.status_message
    return (
        (task.state, task.owner, str(task.agent), task.worker, task.submit_key),
        task.session_id if task.session_id in ("c1", "c2") else "",
        (task.version, task.fence, task.attempts, task.max_attempts),
        (task.cancel_requested, task.pause_requested, bool(task.retry_of)),
        _since(task.run_after, task.updated_at),
        _since(task.lease_expires_at, task.updated_at),
        _since(task.updated_at, task.created_at),
        status.text if status else None,
        [message.text for message in task.messages],
        (task.metadata, task.result),
        (bool(task.parent_id), task.handler_version),
    )


def _step(step: StepRecord) -> list[Any]:
    if step.key.kind == "child":
        # Each ledger has its own ids, and the model no digests.
        return [step.key, NAMED, "", step.fence, step.chunks]
    return [step.key, step.result, step.digest, step.fence, step.chunks]


def _since(moment: datetime | None, start: datetime) -> float | None:
    return None if moment is None else (moment - start).total_seconds()


def _entry(entry: OutboxEntry) -> tuple[Any, ...]:
    return (entry.config.id, entry.event.seq, entry.attempts, entry.last_error, entry.dead)


def _event(event: TaskEvent) -> tuple[Any, ...]:
    match event.body:
        case Transition() as move:
            # The model's first state is where it begins.
            before = move.from_state or "submitted"
            return ("transition", before, move.to_state, move.fence, move.attempt)
        case TaskRequest() as request:
            return ("request", request.what, request.note)
        case ChatMessage() as message:
            return ("message", message.text)
        case StepRecord() as step:
            return ("step", str(step.key))
        case ArtifactChunk() as chunk:
            return ("artifact", text_of(chunk.parts), chunk.append)


_VIEWS: dict[type[Any], Callable[[Any], Any]] = {
    TaskRecord: _task,
    ClaimedTask: lambda claimed: (_task(claimed.task), plainly(claimed.lease)),
    Lease: lambda lease: (
        (lease.fence, lease.worker),
        (lease.cancel_requested, lease.pause_requested),
    ),
    TaskPage: lambda page: (plainly(page.tasks), page.next_cursor is None, page.total),
    ContextPage: lambda page: sorted((one.owner, one.tasks) for one in page.contexts),
    ContextRecord: lambda context: plainly(context.messages),
    ChatMessage: lambda message: message.text,
    StepRecord: _step,
    ArtifactChunk: lambda chunk: (text_of(chunk.parts), chunk.append),
    Artifact: lambda artifact: (artifact.id, text_of(artifact.parts), artifact.complete),
    Feedback: lambda feedback: (feedback.id, feedback.text),
    OutboxEntry: _entry,
    CleanupMark: lambda mark: (mark.kind, mark.ref),
    TaskEvent: _event,
}
