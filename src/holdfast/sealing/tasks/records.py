"""Decrypts a task record that an engine has already loaded, as ``replay`` returns it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from holdfast.sealing.tasks.opener import TaskOpener
from holdfast.sealing.tasks.sealer import METADATA, RESULT
from holdfast.values.codec import blocks_from_json, decode_json, encode_json
from holdfast.values.content import ChatMessage, ContentBlock, TextBlock
from holdfast.values.sealed import SEALED, SEALED_TEXT, is_sealed, note_piece, text_piece
from holdfast.values.stored_messages import message_from_body
from holdfast.values.tasks.records import Artifact, TaskRecord


def pieces_of_record(record: TaskRecord) -> Iterator[str]:
    """Yield the encrypted texts of a loaded task.

    ::

        opener = await opener_of(seal, pieces_of_record(record))
    """
    for value in (record.metadata, record.result):
        if is_sealed(value):
            yield f"{SEALED_TEXT}{value[SEALED]}"
    yield note_piece(record.note)
    blocks = [one.content for one in (*record.messages, record.status_message) if one is not None]
    blocks += [one.parts for one in record.artifacts]
    for some in blocks:
        yield from map(_piece, some)


def open_record(opener: TaskOpener, record: TaskRecord) -> TaskRecord:
    """Return a loaded task with its values decrypted.

    ::

        record = open_record(opener, record)
    """
    said = record.status_message
    return dataclasses.replace(
        record,
        metadata=_json(opener, METADATA, record.metadata),
        result=_json(opener, RESULT, record.result),
        note=opener.note(record.note),
        messages=[_message(opener, one) for one in record.messages],
        status_message=None if said is None else _message(opener, said),
        artifacts=[_artifact(opener, one) for one in record.artifacts],
    )


def _json(opener: TaskOpener, place: Any, value: Any) -> Any:
    return decode_json(opener.json(place, encode_json(value))) if is_sealed(value) else value


def _message(opener: TaskOpener, message: ChatMessage) -> ChatMessage:
    piece = _piece(message.content[0]) if message.content else ""
    if not piece:
        return message
    body = opener.payload(encode_json([piece]), message.id)
    return message_from_body(body, id=message.id, created_at=message.created_at, seq=message.seq)


def _artifact(opener: TaskOpener, artifact: Artifact) -> Artifact:
    parts: list[ContentBlock] = []
    name, metadata = artifact.name, artifact.metadata
    for one in artifact.parts:
        piece = _piece(one)
        if not piece:
            parts.append(one)
            continue
        named, about, content = opener.chunk_content(artifact.id, piece)
        parts += blocks_from_json(decode_json(content))
        name, metadata = named or name, about or metadata
    return dataclasses.replace(artifact, parts=parts, name=name, metadata=metadata)


def _piece(block: ContentBlock) -> str:
    return text_piece(block.text) if isinstance(block, TextBlock) else ""
