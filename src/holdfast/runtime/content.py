"""Converts what a handler produces to the content blocks of an artifact or a message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from holdfast.contracts.blobs import Blobs
from holdfast.runtime.offload import LARGE_BYTES, Mark, keep_blob
from holdfast.values.as_json import jsonable
from holdfast.values.content import (
    ChatMessage,
    ContentBlock,
    DataBlock,
    DocumentBlock,
    TextBlock,
    text_of,
)
from holdfast.values.errors import InvalidInputError

_BLOCKS = get_args(ContentBlock)


async def to_blocks(
    content: str | bytes | dict[str, Any] | ContentBlock | Sequence[ContentBlock],
    *,
    name: str,
    media_type: str,
    blobs: Blobs,
    mark: Mark,
) -> list[ContentBlock]:
    """Convert text, bytes, a dict or blocks to a list of blocks; large bytes go to the blob store.

    ::

        parts = await to_blocks("# Tides", name="tides.md", media_type="", blobs=blobs, mark=mark)
    """
    if isinstance(content, bytes):
        kind = media_type or "application/octet-stream"
        if len(content) < LARGE_BYTES:
            return [DocumentBlock(data=content, media_type=kind, name=name)]
        ref = await keep_blob(blobs, content, kind, mark=mark)
        return [DocumentBlock(blob_ref=ref, media_type=kind, name=name)]
    blocks = blocks_of(content)
    if blocks is None:
        raise InvalidInputError(
            "content",
            f"must be text, bytes, a dict, a content block or a list of blocks, not "
            f"{_kind(content)}",
        )
    return blocks


def to_message(
    content: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock],
    *,
    field: str = "content",
) -> ChatMessage:
    """Convert text, a dict or blocks to a message of the agent; errors name ``field``.

    >>> to_message("hello").role
    'assistant'
    """
    if isinstance(content, ChatMessage):
        return content
    blocks = blocks_of(content)
    if blocks is None:
        raise InvalidInputError(
            field,
            f"must be text, a dict, a ChatMessage, a content block or a list of blocks, not "
            f"{_kind(content)}; a file is written with task.artifact()",
        )
    return ChatMessage.assistant(blocks)


def blocks_of(content: object) -> list[ContentBlock] | None:
    """Convert text, a dict or blocks to a list of blocks; ``None`` for anything else.

    >>> blocks_of("low tide")
    [TextBlock(text='low tide')]
    """
    if isinstance(content, str):
        return [TextBlock(content)]
    if isinstance(content, dict):
        return [DataBlock(content)]
    if isinstance(content, _BLOCKS):
        return [content]
    if isinstance(content, (list, tuple)) and all(isinstance(one, _BLOCKS) for one in content):
        return list(content)
    return None


def _kind(content: object) -> str:
    """Return the type name of wrong content; for a list, also that of the first wrong item."""
    name = type(content).__name__
    if not isinstance(content, (list, tuple)):
        return name
    return (
        f"{name} of {next(type(one).__name__ for one in content if not isinstance(one, _BLOCKS))}"
    )


def as_text(value: object) -> str:
    """Return a text as it is, and any other value as JSON.

    >>> as_text("low tide"), as_text({"at": 12})
    ('low tide', '{"at": 12}')
    """
    return value if isinstance(value, str) else json.dumps(jsonable(value), ensure_ascii=False)


def text_and_data(parts: Sequence[ContentBlock]) -> str:
    r"""Return the text of content, and each piece of its data as JSON on a line of its own.

    >>> text_and_data([TextBlock("low tide"), DataBlock({"at": 12})])
    'low tide\n{"at": 12}'
    """
    data = [as_text(part.data) for part in parts if isinstance(part, DataBlock)]
    return "\n".join(filter(None, [text_of(parts), *data]))
