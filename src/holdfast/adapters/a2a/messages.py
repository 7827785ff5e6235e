"""Converts messages, artifacts and statuses of the SDK to those of the ledger, and back, exactly.

The SDK's object is stored complete, as JSON; the texts of its parts are text blocks, so that they
can be read without the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from holdfast.adapters.keys import id_of
from holdfast.values.content import ChatMessage, ContentBlock, DataBlock, TextBlock
from holdfast.values.errors import CodecError
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.records import Artifact, TaskRecord
from holdfast.values.tasks.reports import StatusReport

M = TypeVar("M", bound=Message)
KEPT = "a2a"
"""The metadata key under which the SDK's object is stored."""

NO_TIME = datetime(1, 1, 2, tzinfo=UTC)
"""The time that is stored for a status without a timestamp: lists have these statuses last."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

STATES: dict[int, TaskState] = {
    pb.TASK_STATE_UNSPECIFIED: TaskState.SUBMITTED,
    pb.TASK_STATE_SUBMITTED: TaskState.SUBMITTED,
    pb.TASK_STATE_WORKING: TaskState.WORKING,
    pb.TASK_STATE_COMPLETED: TaskState.COMPLETED,
    pb.TASK_STATE_FAILED: TaskState.FAILED,
    pb.TASK_STATE_CANCELED: TaskState.CANCELED,
    pb.TASK_STATE_INPUT_REQUIRED: TaskState.INPUT_REQUIRED,
    pb.TASK_STATE_REJECTED: TaskState.REJECTED,
    pb.TASK_STATE_AUTH_REQUIRED: TaskState.AUTH_REQUIRED,
}
_NAMES = {state: number for number, state in STATES.items()}


def plain(message: Any) -> dict[str, Any]:
    """Return a protobuf message as plain JSON values."""
    found: dict[str, Any] = MessageToDict(message)
    return found


def parsed(kept: Mapping[str, Any], into: M) -> M:
    """Return the protobuf message that was stored as JSON."""
    found: M = ParseDict(kept, into)
    return found


def to_blocks(parts: Iterable[Mapping[str, Any]]) -> list[ContentBlock]:
    """Return the parts of a message as blocks: plain texts, and the JSON of all others."""
    return [
        TextBlock(part["text"]) if part.keys() == {"text"} else DataBlock(dict(part))
        for part in parts
    ]


def to_parts(blocks: Iterable[ContentBlock]) -> list[dict[str, Any]]:
    """Return blocks as the SDK's parts that ``to_blocks`` made them from."""
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            parts.append({"text": block.text})
        elif isinstance(block, DataBlock):
            parts.append(block.data)
        else:
            raise CodecError(f"a block of type {block.type} is not a part of an A2A message")
    return parts


def to_message(message: pb.Message, *, id: str | None = None) -> ChatMessage:
    """Return a message for the ledger, with its own id or with ``id``."""
    kept = plain(message)
    blocks = to_blocks(kept.pop("parts", []))
    own = id_of(message.message_id) if message.message_id else new_id()
    make = ChatMessage.assistant if message.role == pb.ROLE_AGENT else ChatMessage.user
    return make(blocks, id=id or own, metadata={KEPT: kept})


def from_message(message: ChatMessage) -> dict[str, Any]:
    """Return the JSON of the SDK's message that this message was made from."""
    kept = message.metadata.get(KEPT)
    if kept is None:
        role = "ROLE_AGENT" if message.role == "assistant" else "ROLE_USER"
        kept = {"messageId": message.id, "role": role}
    return {**kept, **_some(parts=to_parts(message.content))}


def kept_of(artifact: pb.Artifact) -> dict[str, Any]:
    """Return the fields of an artifact without its parts, as JSON values."""
    kept = plain(artifact)
    kept.pop("parts", None)
    return kept


def from_artifact(artifact: Artifact) -> dict[str, Any]:
    """Return the JSON of the SDK's artifact that this artifact was made from."""
    kept = artifact.metadata.get(KEPT, {"artifactId": artifact.id})
    return {**kept, **_some(parts=to_parts(artifact.parts))}


def to_status(status: pb.TaskStatus, message: ChatMessage | None, **extra: Any) -> StatusReport:
    """Return a status report for the ledger; the fields in ``extra`` are stored with it."""
    kept = _some(timestamp=plain(status).get("timestamp"), **extra)
    if status.state == pb.TASK_STATE_UNSPECIFIED:
        kept["unspecified"] = True
    return StatusReport(STATES[status.state], message, json.dumps(kept), when(status))


def when(status: pb.TaskStatus) -> datetime:
    """Return the timestamp of a status as a datetime; ``NO_TIME`` if it has none."""
    return at(status.timestamp.ToNanoseconds()) if status.HasField("timestamp") else NO_TIME


def at(nanoseconds: int) -> datetime:
    """Return nanoseconds since the epoch, which may be negative, as a time in microseconds."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def notes(note: str) -> dict[str, Any]:
    """Return the fields that ``to_status`` stored in a note; empty for any other note."""
    try:
        kept = json.loads(note)
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}


def from_status(state: TaskState, note: str, message: ChatMessage | None) -> dict[str, Any]:
    """Return the JSON of the SDK's status that was stored with this state and note."""
    kept = notes(note)
    number = 0 if kept.get("unspecified") else _NAMES.get(state, pb.TASK_STATE_WORKING)
    return _some(
        state=pb.TaskState.Name(number) if number else None,
        message=None if message is None else from_message(message),
        timestamp=kept.get("timestamp"),
    )


def history_of(
    messages: Sequence[ChatMessage], status_id: str, chosen: Mapping[str, Any] | None
) -> list[ChatMessage]:
    """Return the history of a task: its messages, without the message of its status.

    ``chosen`` is set if the task was saved with another history: the ids of its messages, and the
    task's version at that time. Later messages are added to it.
    """
    said = [one for one in messages if one.id != status_id]
    if chosen is None:
        return said
    by_id = {one.id: one for one in messages}
    later = [one for one in said if (one.seq or 0) > chosen["until"]]
    return [by_id[one] for one in chosen["ids"]] + later


def from_record(record: TaskRecord, task_id: str, kept: Mapping[str, Any] | None = None) -> pb.Task:
    """Return the SDK's task of a record; ``kept`` replaces the stored fields of the SDK's task."""
    kept = record.metadata.get(KEPT, {}) if kept is None else kept
    status = from_status(record.state, record.note, record.status_message)
    status_id = record.status_message.id if record.status_message else ""
    history = history_of(record.messages, status_id, kept.get("history"))
    made = _some(
        id=task_id,
        contextId=kept.get("context", record.session_id),
        artifacts=[from_artifact(one) for one in record.artifacts],
        history=[from_message(one) for one in history],
    )
    if "metadata" in kept:
        made["metadata"] = kept["metadata"]
    if not notes(record.note).get("absent"):
        made["status"] = status
    return parsed(made, pb.Task())


def _some(**fields: Any) -> dict[str, Any]:
    """Return the fields that are neither ``None`` nor empty."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}
