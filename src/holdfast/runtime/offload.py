"""Stores values that are too large for a row as blobs, and loads them again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from holdfast.contracts.blobs import Blobs
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import NotFoundError
from holdfast.values.tasks.events import StepRecord

LARGE_BYTES = 262_144
"""A value of this size or larger is stored as a blob."""

_BLOB, _VALUE = "$holdfast.blob", "$holdfast.value"

Mark: TypeAlias = Callable[[str], Awaitable[None]]
"""Stores a cleanup mark for a blob's ref, so that the blob is released even after a crash."""


async def offload(blobs: Blobs, value: Any, *, field: str, mark: Mark) -> Any:
    """Return what to store for a JSON value; a large value is stored as a pinned blob.

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
    """Return the value for which ``offload`` returned ``stored``.

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
    """Store a blob, add its cleanup mark, then pin it. Returns its ref.

    In this order, a crash in between leaves a blob that expires or one that has a mark.

    ::

        ref = await keep_blob(blobs, pdf, "application/pdf", mark=cleanup.of_file)
    """
    ref = await blobs.store(data, content_type=content_type)
    await mark(ref)
    await blobs.pin(ref)
    return ref


async def pin_results(blobs: Blobs, steps: Iterable[StepRecord], *, mark: Mark) -> None:
    """Pin the blobs of step results that a fork copied: the original task may release them.

    An expired blob is skipped; the step that needs it raises an error later. ::

        await pin_results(blobs, await ledger.steps(task.id), mark=cleanup.of_blob)
    """
    for step in steps:
        stored = step.result
        if isinstance(stored, dict) and len(stored) == 1 and _BLOB in stored:
            await mark(stored[_BLOB])
            with suppress(NotFoundError):
                await blobs.pin(stored[_BLOB])


async def release(blobs: Blobs, ref: str) -> None:
    """Unpin a blob, so that it expires. No error if it does not exist.

    ::

        await release(blobs, ref)
    """
    try:
        await blobs.unpin(ref)
    except NotFoundError:
        return
