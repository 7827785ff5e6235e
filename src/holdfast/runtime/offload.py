"""Values too large for a row: kept as blobs, and found again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from holdfast.contracts.blobs import Blobs
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import NotFoundError

LARGE_BYTES = 262_144
"""From this size on, a value is kept as a blob."""

_BLOB, _VALUE = "$holdfast.blob", "$holdfast.value"

Mark: TypeAlias = Callable[[str], Awaitable[None]]
"""Notes a ref, so that the blob is let go one day, whatever dies."""


async def offload(blobs: Blobs, value: Any, *, field: str, mark: Mark) -> Any:
    """What to store for a JSON value; a large one becomes a pinned blob.

    ::

        stored = await offload(blobs, result, field="result", mark=cleanup.of_blob)
    """
    text = encode_json(value, field=field)
    if len(text) >= LARGE_BYTES:
        return {_BLOB: await keep_blob(blobs, text.encode(), "application/json", mark=mark)}
    if isinstance(value, dict) and (_BLOB in value or _VALUE in value):
        return {_VALUE: value}
    return value


async def load(blobs: Blobs, stored: Any) -> Any:
    """The value that ``offload`` made ``stored`` of.

    ::

        result = await load(blobs, step.result)
    """
    if isinstance(stored, dict) and len(stored) == 1:
        if _BLOB in stored:
            return decode_json(await blobs.resolve(stored[_BLOB]))
        if _VALUE in stored:
            return stored[_VALUE]
    return stored


async def keep_blob(blobs: Blobs, data: bytes, content_type: str, *, mark: Mark) -> str:
    """Store bytes, note them, pin them: a crash in between leaves what expires or is noted.

    ::

        ref = await keep_blob(blobs, pdf, "application/pdf", mark=cleanup.of_file)
    """
    ref = await blobs.store(data, content_type=content_type)
    await mark(ref)
    await blobs.pin(ref)
    return ref


async def release(blobs: Blobs, ref: str) -> None:
    """Let a blob expire; one that is gone already is fine.

    ::

        await release(blobs, ref)
    """
    try:
        await blobs.unpin(ref)
    except NotFoundError:
        return
