"""Decrypts (opens) what a ledger has stored; values that are not encrypted stay as they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.sealing.cipher import Box, Place
from holdfast.sealing.seal import Opener, Seal
from holdfast.sealing.tasks.sealer import (
    ANSWER,
    ANSWERED,
    ERROR,
    FIRST,
    METADATA,
    NAMED,
    NOTE,
    RESULT,
    chunk_place,
    digest_place,
    feedback_place,
    inbox_place,
    message_place,
    push_place,
    step_place,
)
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
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.sealed import (
    SEALED_TEXT,
    is_sealed,
    note_piece,
    object_piece,
    part_piece,
    text_piece,
)
from holdfast.values.tasks.events import StepKey, TaskRequest, Transition


async def opener_of(seal: Seal, pieces: Iterable[str]) -> Opener | None:
    """Return the object that decrypts these texts; ``None`` if all are empty.

    ::

        opener = await opener_of(seal, pieces_of_task(task))
    """
    found = [one for one in pieces if one]
    return await seal.opener(*found) if found else None


@dataclass(frozen=True, slots=True)
class TaskOpener:
    """Decrypts the values of one owner's tasks."""

    opener: Opener
    owner: str

    def message(self, message: StoredMessage) -> StoredMessage:
        """Decrypt a message."""
        return message._replace(payload=self.payload(message.payload, message.id))

    def row(self, row: MessageRow) -> MessageRow:
        """Decrypt a message that may be a plain tuple."""
        key, at, payload, seq = row
        return (key, at, self.payload(payload, key), seq)

    def payload(self, payload: str, id: str) -> str:
        """Decrypt the payload of a message."""
        words = part_piece(payload).split(" ")
        if not words[0]:
            return payload
        return self._open(message_place(id, first=FIRST in words[2:]), words[0])

    def task(self, task: StoredTask) -> StoredTask:
        """Decrypt the fields of a task."""
        return dataclasses.replace(
            task,
            metadata=self.json(METADATA, task.metadata),
            note=self.note(task.note),
            result=None if task.result is None else self.json(RESULT, task.result),
        )

    def snapshot(self, found: TaskSnapshot) -> TaskSnapshot:
        """Decrypt a task with its parts."""
        return found._replace(
            task=self.task(found.task),
            status=found.status and self.message(found.status),
            messages=[self.row(one) for one in found.messages],
            chunks=[self.written(one) for one in found.chunks],
            first=found.first and self.message(found.first),
        )

    def note(self, note: str) -> str:
        """Decrypt a note, and keep the reason that an engine put before it."""
        piece = note_piece(note)
        return note.removesuffix(piece) + self._open(NOTE, piece) if piece else note

    def json(self, place: Place, text: str) -> str:
        """Decrypt a JSON text."""
        piece = object_piece(text)
        return self._open(place, piece) if piece else text

    def text(self, place: Place, text: str) -> str:
        """Decrypt a text."""
        return self._open(place, text) if text_piece(text) else text

    def step(self, step: StoredStep) -> StoredStep:
        """Decrypt a step; the step of a received message contains the encrypted message."""
        digest = self.text(digest_place(step.key), step.digest)
        result = step.result
        piece = object_piece(result)
        if piece:
            value = decode_json(result)
            if is_sealed(value):
                place = ANSWERED if ANSWER in value else step_place(step.key)
                result = self._open(place, piece)
                if NAMED in value:
                    name, result = decode_json(result)
                    key = StepKey(name, step.key.occurrence, step.key.kind)
                    step = dataclasses.replace(step, key=key)
            else:
                place = inbox_place(value["id"])
                inside = self.opener.json(self.owner, place, value["message"])
                result = encode_json({**value, "message": inside})
        return dataclasses.replace(step, result=result, digest=digest)

    def chunk(self, chunk: StoredChunk) -> StoredChunk:
        """Decrypt a chunk of an artifact."""
        piece = part_piece(chunk.parts)
        if not piece:
            return chunk
        name, metadata, parts = self.chunk_content(chunk.artifact_id, piece)
        return dataclasses.replace(chunk, parts=parts, name=name, metadata=encode_json(metadata))

    def chunk_content(self, artifact_id: str, piece: str) -> tuple[str, dict[str, Any], str]:
        """Return the name, the metadata and the parts of a chunk from its encrypted text."""
        name, metadata, parts = decode_json(self._open(chunk_place(artifact_id), piece))
        return name, metadata, parts

    def written(self, written: WrittenChunk) -> WrittenChunk:
        """Decrypt a chunk with its time."""
        return self.chunk(written[0]), written[1]

    def body(self, body: StoredBody) -> StoredBody:
        """Decrypt the body of an event."""
        match body:
            case StoredMessage():
                return self.message(body)
            case StoredStep():
                return self.step(body)
            case StoredChunk():
                return self.chunk(body)
            case Transition() | TaskRequest():
                return dataclasses.replace(body, note=self.note(body.note))

    def event(self, event: StoredEvent) -> StoredEvent:
        """Decrypt an event of a timeline."""
        return event._replace(body=self.body(event.body))

    def push(self, task_id: str, config: StoredPush) -> StoredPush:
        """Decrypt a push config."""
        return dataclasses.replace(
            config,
            url=self.text(push_place(task_id, config.id, "url"), config.url),
            token=self.text(push_place(task_id, config.id, "token"), config.token),
            authentication=self.json(
                push_place(task_id, config.id, "authentication"), config.authentication
            ),
        )

    def entry(self, entry: StoredEntry) -> StoredEntry:
        """Decrypt an entry of the outbox."""
        return entry._replace(
            config=self.push(entry.task_id, entry.config),
            event=self.event(entry.event),
            last_error=self.text(ERROR, entry.last_error),
        )

    def feedback(self, task_id: str, feedback: StoredFeedback) -> StoredFeedback:
        """Decrypt feedback."""
        piece = text_piece(feedback.text)
        if not piece:
            return feedback
        opened = self._open(feedback_place(task_id, feedback.id), piece)
        text, metadata = decode_json(opened)
        return dataclasses.replace(feedback, text=text, metadata=encode_json(metadata))

    def _open(self, place: Place, piece: str) -> str:
        box = Box.of_text(piece.removeprefix(SEALED_TEXT).partition(" ")[0])
        return self.opener.bytes(self.owner, place, box).decode()


def pieces_of_task(task: StoredTask) -> Iterator[str]:
    """Yield the encrypted texts of a task.

    ::

        opener = await opener_of(seal, pieces_of_task(task))
    """
    yield object_piece(task.metadata)
    yield note_piece(task.note)
    yield object_piece(task.result or "")


def pieces_of_snapshot(found: TaskSnapshot) -> Iterator[str]:
    """Yield the encrypted texts of a task with its parts.

    ::

        opener = await opener_of(seal, pieces_of_snapshot(found))
    """
    yield from pieces_of_task(found.task)
    for message in (found.status, found.first):
        if message is not None:
            yield part_piece(message.payload)
    for row in found.messages:
        yield part_piece(row[2])
    for chunk, _ in found.chunks:
        yield part_piece(chunk.parts)


def pieces_of_body(body: StoredBody) -> Iterator[str]:
    """Yield the encrypted texts of the body of an event.

    ::

        opener = await opener_of(seal, pieces_of_body(event.body))
    """
    match body:
        case StoredMessage():
            yield part_piece(body.payload)
        case StoredStep():
            yield object_piece(body.result)
            yield text_piece(body.digest)
        case StoredChunk():
            yield part_piece(body.parts)
        case Transition() | TaskRequest():
            yield note_piece(body.note)


def pieces_of_push(config: StoredPush) -> Iterator[str]:
    """Yield the encrypted texts of a push config.

    ::

        opener = await opener_of(seal, pieces_of_push(config))
    """
    yield text_piece(config.url)
    yield text_piece(config.token)
    yield object_piece(config.authentication)


def pieces_of_entry(entry: StoredEntry) -> Iterator[str]:
    """Yield the encrypted texts of an entry of the outbox.

    ::

        opener = await opener_of(seal, pieces_of_entry(entry))
    """
    yield from pieces_of_push(entry.config)
    yield from pieces_of_body(entry.event.body)
    yield text_piece(entry.last_error)
