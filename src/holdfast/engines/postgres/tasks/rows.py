"""Convert rows of the ledger's tables to the records that its storage returns."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, assert_never, cast

from holdfast.spi.tasks.records import (
    MessageRow,
    StoredBody,
    StoredEntry,
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
)
from holdfast.values.codec import decode_json
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import Actor, TaskState
from holdfast.values.tasks.events import EventKind, StepKey, TaskRequest, Transition

to_agent = lru_cache(maxsize=1024)(AgentId.parse)
"""Parses an agent id; cached, as there are few agents with many tasks each."""
_STATES = {state.value: state for state in TaskState}


def to_stored(row: Any) -> StoredTask:
    """Return the task in a row, without messages and artifacts."""
    return StoredTask(
        row["id"],
        row["context_id"],
        row["owner"],
        to_agent(row["agent"]),
        row["metadata"],
        row["max_attempts"],
        row["submit_key"],
        row["retry_of"],
        row["created_at"],
        row["updated_at"],
        _STATES[row["state"]],
        decode_json(row["note"]),
        row["version"],
        row["fence"],
        row["attempts"],
        row["worker"],
        row["lease_expires_at"],
        row["run_after"],
        row["cancel_requested"],
        row["pause_requested"],
        # What a function has just stored is not seen by its statement.
        row.get("priority") or 0,
        row.get("limit_key") or "",
        row.get("result"),
        row.get("parent_id") or "",
        row.get("handler_version") or "",
    )


def to_task(row: Any) -> TaskSnapshot:
    """Return a task, with messages and artifacts if the row has them."""
    status = None
    if row.get("status_id") is not None:
        status = StoredMessage(
            row["status_id"], row["status_at"], row["status_body"], row["status_seq"]
        )
    return TaskSnapshot(
        to_stored(row),
        status,
        to_messages(row) if row.get("message_ids") else (),
        to_chunks(row) if row.get("chunk_artifacts") else (),
        truncated=bool(row.get("truncated")),
        first=_first(row) if row.get("first_id") is not None else None,
    )


def _first(row: Any) -> StoredMessage:
    return StoredMessage(row["first_id"], row["first_at"], row["first_body"], row["first_seq"])


def to_messages(row: Any) -> list[MessageRow]:
    """Return the messages in the columns of ``task_messages``."""
    columns = ("message_ids", "message_times", "message_bodies", "message_seqs")
    return list(zip(*(row[one] for one in columns), strict=True))


def to_chunks(row: Any) -> list[WrittenChunk]:
    """Return the chunks of artifacts in the columns of ``task_artifacts``."""
    columns = (
        *("chunk_artifacts", "chunk_times", "chunk_bodies", "chunk_appends"),
        *("chunk_lasts", "chunk_names", "chunk_metadata"),
    )
    return [
        (StoredChunk(key, body, append, last, decode_json(name), metadata), at)
        for key, at, body, append, last, name, metadata in zip(
            *(row[one] for one in columns), strict=True
        )
    ]


def to_message(row: Any) -> StoredMessage:
    """Return the message in an event."""
    return StoredMessage(row["message_id"], row["written_at"], row["body"], row["seq"])


def to_step(row: Any) -> StoredStep:
    """Return the step in an event."""
    return StoredStep(
        _key(row),
        row["body"],
        row["at"],
        decode_json(row["digest"]),
        row["fence"],
        row["chunks"],
        row.get("started_at"),
    )


def _key(row: Any) -> StepKey:
    return StepKey(row["step_name"], row["step_occurrence"], row["step_kind"])


def to_chunk(row: Any) -> StoredChunk:
    """Return the chunk of an artifact in an event."""
    return StoredChunk(
        row["artifact_id"],
        row["body"],
        row["append"],
        row["last_chunk"],
        decode_json(row["name"]),
        row["metadata"],
        None if row["step_kind"] is None else _key(row),
        row["fence"],
    )


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
        app_version=row.get("app_version") or "",
    )


def to_event(row: Any) -> StoredEvent:
    """Return an entry of a timeline."""
    kind = cast("EventKind", row["kind"])
    body: StoredBody
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
    return StoredEvent(
        *(row["seq"], row["at"], Actor(row["actor"]), row["fence"], body),
        # The view of the outbox is older than the column.
        row.get("by_name") or "",
    )


def to_feedback(row: Any) -> StoredFeedback:
    """Return the feedback on a task."""
    return StoredFeedback(
        row["id"], decode_json(row["text"]), row["rating"], row["metadata"], row["created_at"]
    )


def to_push_config(row: Any, config_id: str) -> StoredPush:
    """Return a push config."""
    url, token = decode_json(row["url"]), decode_json(row["token"])
    return StoredPush(config_id, url, token, row["authentication"])


def to_entry(row: Any) -> StoredEntry:
    """Return an entry of the outbox."""
    return StoredEntry(
        row["task_id"],
        row["owner"],
        to_push_config(row, row["config_id"]),
        to_event(row),
        row["due_at"],
        row["attempts"],
        decode_json(row["last_error"]),
        row["dead"],
    )
