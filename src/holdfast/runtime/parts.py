"""What a handler produces, as the parts of an artifact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from holdfast.kernel.core.content import ContentBlock, DataBlock, DocumentBlock, TextBlock
from holdfast.kernel.core.errors import InvalidInputError
from holdfast.kernel.storage.blob import BlobStore
from holdfast.runtime.large import LARGE_BYTES, Mark, keep

_BLOCKS = get_args(ContentBlock)


async def parts_of(
    content: str | bytes | dict[str, Any] | ContentBlock | Sequence[ContentBlock],
    *,
    name: str,
    media_type: str,
    blobs: BlobStore,
    mark: Mark,
) -> list[ContentBlock]:
    """Text, a file, data or blocks, as blocks; large bytes go to the blob store.

    ::

        parts = await parts_of("# Tides", name="tides.md", media_type="", blobs=blobs, mark=mark)
    """
    if isinstance(content, str):
        return [TextBlock(content)]
    if isinstance(content, bytes):
        kind = media_type or "application/octet-stream"
        if len(content) < LARGE_BYTES:
            return [DocumentBlock(data=content, media_type=kind, name=name)]
        ref = await keep(blobs, content, kind, mark=mark)
        return [DocumentBlock(blob_ref=ref, media_type=kind, name=name)]
    if isinstance(content, dict):
        return [DataBlock(content)]
    if isinstance(content, _BLOCKS):
        return [content]
    if isinstance(content, list) and all(isinstance(one, _BLOCKS) for one in content):
        return list(content)
    raise InvalidInputError(
        "content",
        f"must be text, bytes, a dict, a content block or a list of them, not "
        f"{type(content).__name__}",
    )
