"""Rebuilds a task from its timeline: pure functions that every engine uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, assert_never

from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.tasks.events import (
    TRY,
    ArtifactChunk,
    StepRecord,
    TaskEvent,
    TaskRequest,
    Transition,
)
from holdfast.values.tasks.records import Artifact, TaskRecord

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def assemble(
    artifact_id: str, chunks: Iterable[tuple[ArtifactChunk, datetime]], *, task_id: str
) -> Artifact:
    """Return the artifact that its chunks form. Name and metadata are the last ones given.

    >>> from holdfast.values.content import TextBlock
    >>> now = datetime(2030, 1, 1)
    >>> first = ArtifactChunk("a", [TextBlock("x")], name="A")
    >>> last = ArtifactChunk("a", [TextBlock("y")], append=True, last_chunk=True)
    >>> made = assemble("a", [(first, now), (last, now)], task_id="t1")
    >>> made.name, len(made.parts), made.complete
    ('A', 2, True)
    """
    parts: list[ContentBlock] = []
    name, metadata, complete, updated_at = "", dict[str, Any](), False, _LONG_AGO
    for chunk, updated_at in chunks:  # noqa: B007 - the last chunk's time is the artifact's
        if not chunk.append:
            parts, name, metadata = [], "", {}
        parts.extend(chunk.parts)
        name, metadata = chunk.name or name, chunk.metadata or metadata
        complete = chunk.last_chunk
    return Artifact(
        artifact_id, task_id, parts, updated_at, name=name, metadata=metadata, complete=complete
    )


def replay(origin: TaskRecord, events: Iterable[TaskEvent]) -> TaskRecord | None:
    """Return the task as it was after its first events; ``None`` without events.

    ``origin`` has the fields that never change: ids, agent, owner, metadata, limits. The lease's
    expiry is
    not part of the timeline and stays empty.

    >>> from holdfast.values.identity import AgentId
    >>> from holdfast.values.lifecycle import Actor
    >>> now = datetime(2030, 1, 1, tzinfo=UTC)
    >>> task = TaskRecord("t1", "c1", AgentId("", "a"), TaskState.COMPLETED, now, now, version=9)
    >>> born = Transition("t1", 1, None, TaskState.SUBMITTED, now, Actor.CLIENT)
    >>> then = replay(task, [TaskEvent("t1", 1, now, Actor.CLIENT, 0, born)])
    >>> then.state.value, then.version
    ('submitted', 1)
    """
    task: TaskRecord | None = None
    messages: list[ChatMessage] = []
    chunks: dict[str, list[tuple[ArtifactChunk, datetime]]] = {}
    for event in events:
        task = _step(task or origin, event, messages, chunks)
    if task is None:
        return None
    artifacts = [assemble(one, chunks[one], task_id=task.id) for one in chunks]
    return replace(
        task,
        messages=messages,
        artifacts=artifacts,
        lease_expires_at=None,
        # A task gets its result with its last transition, and no other later.
        result=origin.result if task.state is TaskState.COMPLETED else None,
    )


def _step(
    task: TaskRecord,
    event: TaskEvent,
    messages: list[ChatMessage],
    chunks: dict[str, list[tuple[ArtifactChunk, datetime]]],
) -> TaskRecord:
    body = event.body
    match body:
        case Transition():
            task = _moved(task, body, messages)
        case TaskRequest():
            cancel = task.cancel_requested or body.what == "cancel"
            pause = body.what == "pause" or (task.pause_requested and body.what == "cancel")
            task = replace(task, cancel_requested=cancel, pause_requested=pause)
        case ChatMessage():
            messages.append(body)
        case StepRecord():
            task = replace(task, attempts=task.attempts if body.key.kind == TRY else 0)
        case ArtifactChunk():
            chunks.setdefault(body.artifact_id, []).append((body, event.at))
        case _ as never:
            assert_never(never)
    return replace(task, version=event.seq)


def _moved(task: TaskRecord, move: Transition, messages: list[ChatMessage]) -> TaskRecord:
    done = move.to_state in TERMINAL
    started = move.from_state is None
    message = None
    if move.message_id:
        message = next(one for one in reversed(messages) if one.id == move.message_id)
    return replace(
        task,
        state=move.to_state,
        note=move.note,
        status_message=message,
        fence=move.fence,
        attempts=move.attempt,
        worker=move.worker if move.to_state is TaskState.WORKING else "",
        run_after=move.run_after,
        cancel_requested=task.cancel_requested and not (started or done),
        pause_requested=task.pause_requested
        and not (started or done or move.to_state is TaskState.PAUSED),
        updated_at=move.at,
    )
