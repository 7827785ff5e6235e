"""Converts parts, messages, tasks and artifacts between A2A and Holdfast.

From A2A: fields that Holdfast's content blocks do not have (metadata of parts, names of text parts,
extensions, references) are stored with the message under ``holdfast.wire`` and sent back with it.

To A2A: ``holdfast.type``, if the media type does not determine the kind of block, ``holdfast.name``
and ``holdfast.role`` are sent as metadata. Keys that begin with ``holdfast.`` are reserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from a2a.types import a2a_pb2 as a2a
from google.protobuf.timestamp_pb2 import Timestamp

from holdfast.server.json_values import (
    check_values,
    object_from_wire,
    object_to_wire,
    value_to_wire,
)
from holdfast.values.codec import block_from_json, block_to_json, plain
from holdfast.values.content import (
    AudioBlock,
    ChatMessage,
    ContentBlock,
    DataBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ToolResultBlock,
    VideoBlock,
)
from holdfast.values.errors import CodecError, InvalidInputError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import ArtifactChunk, Transition
from holdfast.values.tasks.records import Artifact, TaskRecord

TYPE, NAME, ROLE, WIRE = "holdfast.type", "holdfast.name", "holdfast.role", "holdfast.wire"
TASK = "holdfast.task"
"""Metadata key of a reply with the id of its task in the ledger."""

Files = Mapping[str, bytes | str]
"""The blobs of some blocks by ref: their bytes, or the URL to fetch them from."""

Media = ImageBlock | AudioBlock | VideoBlock | DocumentBlock
_MEDIA: dict[str, type[Media]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
    "document": DocumentBlock,
}
_STATES: dict[TaskState, a2a.TaskState] = {
    TaskState.SUBMITTED: a2a.TASK_STATE_SUBMITTED,
    TaskState.WORKING: a2a.TASK_STATE_WORKING,
    TaskState.INPUT_REQUIRED: a2a.TASK_STATE_INPUT_REQUIRED,
    TaskState.AUTH_REQUIRED: a2a.TASK_STATE_AUTH_REQUIRED,
    TaskState.PAUSED: a2a.TASK_STATE_SUBMITTED,
    TaskState.COMPLETED: a2a.TASK_STATE_COMPLETED,
    TaskState.FAILED: a2a.TASK_STATE_FAILED,
    TaskState.CANCELED: a2a.TASK_STATE_CANCELED,
    TaskState.REJECTED: a2a.TASK_STATE_REJECTED,
}


def states_of(state: a2a.TaskState) -> list[TaskState]:
    """Return the task states that map to one A2A state.

    >>> states_of(a2a.TASK_STATE_SUBMITTED)
    [<TaskState.SUBMITTED: 'submitted'>, <TaskState.PAUSED: 'paused'>]
    """
    return [ours for ours, theirs in _STATES.items() if theirs == state]


def part_from_wire(part: a2a.Part, *, field: str = "part") -> tuple[ContentBlock, dict[str, Any]]:
    """Convert an A2A part to a block. Returns also the part's fields that the block cannot hold.

    >>> part_from_wire(a2a.Part(text="low tide"))
    (TextBlock(text='low tide'), {})
    """
    metadata = object_from_wire(part.metadata, field=f"{field}.metadata")
    given = metadata.get(TYPE)
    # A client may send any value here: only a text is a kind.
    kind = given if isinstance(given, str) else None
    rest = {"filename": part.filename, "mediaType": part.media_type}
    block: ContentBlock
    match part.WhichOneof("content"):
        case "text":
            block = TextBlock(part.text)
        case "data":
            value = object_from_wire(part.data, field=f"{field}.data")
            known = isinstance(value, dict) and kind is not None and value.get("type") == kind
            if known and kind not in {*_MEDIA, "text", "data"}:
                block = _block_from_data(value, field=field)
                del metadata[TYPE]
            else:
                block = DataBlock(value)
        case "raw" | "url" as how:
            implied = _kind_of(part.media_type)
            if kind in _MEDIA:
                del metadata[TYPE]
            content: dict[str, Any] = (
                {"data": bytes(part.raw)} if how == "raw" else {"url": part.url}
            )
            block = _MEDIA[kind if kind in _MEDIA else implied](
                **content, media_type=part.media_type, name=part.filename
            )
            rest = {}
        case _:
            raise InvalidInputError(field, "has no content: give it text, data, raw or url")
    extra: dict[str, Any] = {key: value for key, value in rest.items() if value}
    return block, extra | ({"metadata": metadata} if metadata else {})


def _block_from_data(value: dict[str, Any], *, field: str) -> ContentBlock:
    try:
        block = block_from_json(plain(value))
    except CodecError:
        raise InvalidInputError(f"{field}.data", f"is not a {value['type']} block") from None
    if any(getattr(one, "blob_ref", None) is not None for one in _inside([block])):
        # A client must not choose a ref: it would be resolved, even to another owner's blob.
        raise InvalidInputError(f"{field}.data", "must not name a blob_ref: send the file itself")
    return block


def _inside(blocks: Iterable[ContentBlock]) -> Iterable[ContentBlock]:
    for block in blocks:
        yield block
        if isinstance(block, ToolResultBlock):
            yield from _inside(block.content)


def blob_refs(blocks: Iterable[ContentBlock]) -> set[str]:
    """Return the refs of the blobs in content blocks.

    >>> blob_refs([DocumentBlock(blob_ref="b1"), TextBlock("x")])
    {'b1'}
    """
    return {
        block.blob_ref
        for block in blocks
        if isinstance(block, Media) and block.blob_ref is not None
    }


def _kind_of(media_type: str) -> str:
    kind = media_type.partition("/")[0].lower()
    return kind if kind in _MEDIA else "document"


def part_to_wire(
    block: ContentBlock, *, extra: Mapping[str, Any] | None = None, files: Files | None = None
) -> a2a.Part:
    """Convert a block to an A2A part, with the extra fields that ``part_from_wire`` returned.

    >>> part_to_wire(TextBlock("low tide")).text
    'low tide'
    """
    given = extra or {}
    metadata: dict[str, Any] = {}
    part = a2a.Part(filename=given.get("filename", ""), media_type=given.get("mediaType", ""))
    if isinstance(block, TextBlock):
        part.text = block.text
    elif isinstance(block, DataBlock):
        part.data.CopyFrom(value_to_wire(block.data))
    elif isinstance(block, Media):
        part.filename, part.media_type = block.name, block.media_type
        if block.type != _kind_of(block.media_type):
            metadata[TYPE] = block.type
        content = block.data if block.data is not None else block.url
        if block.blob_ref is not None:
            content = (files or {}).get(block.blob_ref, "")
        if isinstance(content, bytes):
            part.raw = content
        else:
            part.url = content or ""
    else:
        part.data.CopyFrom(value_to_wire(block_to_json(block)))
        metadata[TYPE] = block.type
    metadata |= given.get("metadata", {})
    if metadata:
        part.metadata.CopyFrom(object_to_wire(metadata))
    return part


def message_from_wire(message: a2a.Message, *, id: str = "") -> ChatMessage:
    """Convert an A2A message to a ``ChatMessage``; its task and context ids are not included.

    >>> said = a2a.Message(message_id="m1", role=a2a.ROLE_USER, parts=[a2a.Part(text="hi")])
    >>> message_from_wire(said).text
    'hi'
    """
    values = [part.data for part in message.parts if part.WhichOneof("content") == "data"]
    check_values(
        [message.metadata, *(part.metadata for part in message.parts), *values], field="message"
    )
    metadata = object_from_wire(message.metadata, field="message.metadata")
    if WIRE in metadata:
        raise InvalidInputError(
            "message.metadata", f"must not have the key {WIRE!r}: it is reserved"
        )
    content, beside = [], {}
    for at, part in enumerate(message.parts):
        block, extra = part_from_wire(part, field=f"message.parts[{at}]")
        content.append(block)
        if extra:
            beside[str(at)] = extra
    kept = {
        "parts": beside,
        "extensions": list(message.extensions),
        "referenceTaskIds": list(message.reference_task_ids),
    }
    kept = {key: value for key, value in kept.items() if value}
    name = metadata.pop(NAME, "") if isinstance(metadata.get(NAME), str) else ""
    return ChatMessage(
        "assistant" if message.role == a2a.ROLE_AGENT else "user",
        content,
        name=name,
        metadata=metadata | ({WIRE: kept} if kept else {}),
        id=id or message.message_id,
    )


def message_to_wire(
    message: ChatMessage, *, task_id: str = "", context_id: str = "", files: Files | None = None
) -> a2a.Message:
    """Convert a ``ChatMessage`` to an A2A message with its task and context ids.

    >>> message_to_wire(ChatMessage.assistant("done", id="m1")).parts[0].text
    'done'
    """
    metadata = dict(message.metadata)
    kept = metadata.pop(WIRE, {})
    beside = kept.get("parts", {})
    if message.name:
        metadata[NAME] = message.name
    if message.role in {"system", "tool"}:
        metadata[ROLE] = message.role
    found = a2a.Message(
        message_id=kept.get("messageId", message.id),
        task_id=task_id,
        context_id=context_id,
        role=a2a.ROLE_USER if message.role == "user" else a2a.ROLE_AGENT,
        parts=[
            part_to_wire(block, extra=beside.get(str(at)), files=files)
            for at, block in enumerate(message.content)
        ],
        extensions=kept.get("extensions", []),
        reference_task_ids=kept.get("referenceTaskIds", []),
    )
    if metadata:
        found.metadata.CopyFrom(object_to_wire(metadata))
    return found


def status_to_wire(
    task: TaskRecord | Transition,
    *,
    context_id: str,
    message: ChatMessage | None,
    files: Files | None = None,
) -> a2a.TaskStatus:
    """Convert the state of a task, or a transition, to an A2A status with the agent's message."""
    state, when, task_id = (
        (task.to_state, task.at, task.task_id)
        if isinstance(task, Transition)
        else (task.state, task.updated_at, task.id)
    )
    status = a2a.TaskStatus(state=_STATES[state], timestamp=_moment(when))
    if message is not None and message.role != "user":
        said = message_to_wire(message, task_id=task_id, context_id=context_id, files=files)
        status.message.CopyFrom(said)
    elif state is TaskState.REJECTED and task.note:
        # The note of a rejection is meant for the client; other notes may contain a traceback.
        refusal = ChatMessage.assistant(task.note, id=f"{task_id}:rejected")
        said = message_to_wire(refusal, task_id=task_id, context_id=context_id)
        status.message.CopyFrom(said)
    return status


def _moment(when: datetime) -> Timestamp:
    moment = Timestamp()
    moment.FromDatetime(when)
    return moment


def task_to_wire(task: TaskRecord, *, files: Files | None = None) -> a2a.Task:
    """Convert a task to A2A, with the messages and artifacts of its record."""
    found = a2a.Task(
        id=task.id,
        context_id=task.session_id,
        status=status_to_wire(
            task, context_id=task.session_id, message=task.status_message, files=files
        ),
        artifacts=[artifact_to_wire(one, files=files) for one in task.artifacts],
        history=[
            message_to_wire(one, task_id=task.id, context_id=task.session_id, files=files)
            for one in task.messages
        ],
    )
    metadata = task.metadata | ({"paused": True} if task.state is TaskState.PAUSED else {})
    metadata |= {"truncated": True} if task.truncated else {}
    if metadata:
        found.metadata.CopyFrom(object_to_wire(metadata))
    return found


def artifact_to_wire(
    artifact: Artifact | ArtifactChunk, *, files: Files | None = None
) -> a2a.Artifact:
    """Convert an artifact, or a chunk of one in a stream, to A2A."""
    found = a2a.Artifact(
        artifact_id=artifact.id if isinstance(artifact, Artifact) else artifact.artifact_id,
        name=artifact.name,
        parts=[part_to_wire(block, files=files) for block in artifact.parts],
    )
    if artifact.metadata:
        found.metadata.CopyFrom(object_to_wire(artifact.metadata))
    return found


def blocks_of(task: TaskRecord) -> Sequence[ContentBlock]:
    """Return all content blocks in a task's record."""
    said = [*task.messages, *([task.status_message] if task.status_message else [])]
    parts = [one.content for one in said] + [one.parts for one in task.artifacts]
    return [block for blocks in parts for block in blocks]
