"""From rows of the ledger's tables to its records."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import Any, assert_never, cast

from holdfast.kernel.core.codec import decode_json
from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.identity import AgentId
from holdfast.kernel.core.lifecycle import Actor, TaskState
from holdfast.kernel.core.stored_messages import messages_from_rows
from holdfast.kernel.storage.ledger_events import (
    ArtifactChunk,
    EventBody,
    EventKind,
    StepKey,
    StepRecord,
    TaskEvent,
    TaskRequest,
    Transition,
)
from holdfast.kernel.storage.ledger_push import OutboxEntry, PushConfig
from holdfast.kernel.storage.ledger_records import Artifact, Feedback, TaskRecord
from holdfast.kernel.storage.ledger_replay import assemble
from holdfast.kernel.storage.ledger_stored import (
    StoredChunk,
    StoredFeedback,
    StoredMessage,
    StoredPush,
    StoredStep,
)

_agent = lru_cache(maxsize=1024)(AgentId.parse)
"""There are few agents, and many tasks of each."""
_STATES = {state.value: state for state in TaskState}


def to_task(row: Any) -> TaskRecord:
    """A task, with messages and artifacts where the row has them."""
    status = None
    if row.get("status_id") is not None:
        stored = StoredMessage(row["status_id"], row["status_at"], row["status_body"])
        status = stored.load(row["status_seq"])
    return TaskRecord(
        row["id"],
        row["context_id"],
        _agent(row["agent"]),
        _STATES[row["state"]],
        row["created_at"],
        row["updated_at"],
        owner=row["owner"],
        note=decode_json(row["note"]),
        status_message=status,
        messages=to_messages(row) if row.get("message_ids") else [],
        artifacts=to_artifacts(row) if row.get("chunk_artifacts") else [],
        metadata=decode_json(row["metadata"]),
        version=row["version"],
        fence=row["fence"],
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        worker=row["worker"],
        lease_expires_at=row["lease_expires_at"],
        run_after=row["run_after"],
        cancel_requested=row["cancel_requested"],
        pause_requested=row["pause_requested"],
        submit_key=row["submit_key"],
        retry_of=row["retry_of"],
        truncated=bool(row.get("truncated")),
    )


def to_origin(row: Any) -> TaskRecord:
    """A task in its first moment, from an event that comes with what never changes about it."""
    return TaskRecord(
        row["task_id"],
        row["context_id"],
        _agent(row["agent"]),
        TaskState.SUBMITTED,
        row["created_at"],
        row["created_at"],
        owner=row["owner"],
        metadata=decode_json(row["task_metadata"]),
        max_attempts=row["max_attempts"],
        submit_key=row["submit_key"],
        retry_of=row["retry_of"],
    )


def to_messages(row: Any) -> list[ChatMessage]:
    """The messages in the columns that ``task_messages`` makes."""
    columns = ("message_bodies", "message_ids", "message_times", "message_seqs")
    return messages_from_rows(zip(*(row[one] for one in columns), strict=True))


def to_artifacts(row: Any) -> list[Artifact]:
    """The artifacts in the columns that ``task_artifacts`` makes."""
    columns = (
        *("chunk_artifacts", "chunk_times", "chunk_bodies", "chunk_appends"),
        *("chunk_lasts", "chunk_names", "chunk_metadata"),
    )
    chunks = [
        (
            StoredChunk(key, body, append, last, decode_json(name), metadata, None, 0).load(),
            at,
        )
        for key, at, body, append, last, name, metadata in zip(
            *(row[one] for one in columns), strict=True
        )
    ]
    return [
        assemble(key, group, task_id=row["id"])
        for key, group in groupby(chunks, key=lambda one: one[0].artifact_id)
    ]


def to_message(row: Any) -> ChatMessage:
    """The message in an event."""
    return StoredMessage(row["message_id"], row["written_at"], row["body"]).load(row["seq"])


def to_step(row: Any) -> StepRecord:
    """The step in an event."""
    key = StepKey(row["step_name"], row["step_occurrence"], row["step_kind"])
    digest = decode_json(row["digest"])
    step = StoredStep(key, row["body"], row["at"], digest, row["fence"], row["chunks"])
    return step.load(row["task_id"])


def to_chunk(row: Any) -> ArtifactChunk:
    """The chunk of an artifact in an event."""
    step = None
    if row["step_kind"] is not None:
        step = StepKey(row["step_name"], row["step_occurrence"], row["step_kind"])
    return StoredChunk(
        row["artifact_id"],
        row["body"],
        row["append"],
        row["last_chunk"],
        decode_json(row["name"]),
        row["metadata"],
        step,
        row["fence"],
    ).load()


def _to_transition(row: Any) -> Transition:
    before = row["from_state"]
    return Transition(
        row["task_id"],
        row["number"],
        None if before is None else TaskState(before),
        TaskState(row["to_state"]),
        row["at"],
        Actor(row["actor"]),
        worker=row["worker"],
        fence=row["fence"],
        attempt=row["attempt"],
        note=decode_json(row["note"]),
        run_after=row["run_after"],
        message_id=row["message_id"],
    )


def to_event(row: Any) -> TaskEvent:
    """An entry of a timeline."""
    kind = cast("EventKind", row["kind"])
    body: EventBody
    match kind:
        case "transition":
            body = _to_transition(row)
        case "request":
            body = TaskRequest(row["request"], decode_json(row["note"]))
        case "message":
            body = to_message(row)
        case "step":
            body = to_step(row)
        case "artifact":
            body = to_chunk(row)
        case _ as never:
            assert_never(never)
    return TaskEvent(row["task_id"], row["seq"], row["at"], Actor(row["actor"]), row["fence"], body)


def to_feedback(row: Any) -> Feedback:
    """What somebody thought of a task."""
    stored = StoredFeedback(
        row["id"], decode_json(row["text"]), row["rating"], row["metadata"], row["created_at"]
    )
    return stored.load(row["task_id"])


def to_push_config(row: Any, config_id: str) -> PushConfig:
    """A push config."""
    url, token = decode_json(row["url"]), decode_json(row["token"])
    return StoredPush(config_id, url, token, row["authentication"]).load()


def to_entry(row: Any) -> OutboxEntry:
    """An entry of the outbox; its id is made of its key."""
    return OutboxEntry(
        entry_id(row["task_id"], row["seq"], row["config_id"]),
        to_push_config(row, row["config_id"]),
        to_event(row),
        row["due_at"],
        attempts=row["attempts"],
        last_error=decode_json(row["last_error"]),
        dead=row["dead"],
        owner=row["owner"],
    )


def entry_id(task_id: str, seq: int, config_id: str) -> str:
    """What an entry of the outbox is called."""
    return f"{task_id}/{seq}/{config_id}"
