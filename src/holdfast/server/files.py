"""The files of a task: small ones are sent inline, large ones as URLs."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from holdfast.server.answer_room import Room
from holdfast.server.caller import CALL, Call
from holdfast.server.errors import to_a2a
from holdfast.server.wire import Files, blob_refs, blocks_of
from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.errors import HoldfastError, InvalidInputError, NotFoundError
from holdfast.values.tasks.events import ArtifactChunk
from holdfast.wiring.state import State

INLINE_BYTES = 65_536
"""A file up to this size is sent inline with its message or artifact."""

EVENT_INLINE_BYTES = 1 << 20
"""Maximum total size of inline files in one event of a stream."""

PAGE_BYTES = 1 << 20
"""Maximum bytes of a timeline in one read."""

NOT_FOUND = {"error": {"code": 404, "status": "NOT_FOUND", "message": "not found"}}


class FileLinks:
    """Returns bytes or a URL for each blob in content blocks.

    ::

        files = await FileLinks("https://agents.example.org").of(state, blocks, task_id=task.id)
    """

    def __init__(self, public_url: str) -> None:
        self._base = public_url.rstrip("/")

    async def of(
        self,
        state: State,
        blocks: Iterable[ContentBlock],
        *,
        task_id: str,
        room: Room | None = None,
    ) -> Files:
        """Return the bytes of small blobs while there is room, and the URLs of the others."""
        room = Room(EVENT_INLINE_BYTES) if room is None else room
        found: dict[str, bytes | str] = {}
        for ref in sorted(blob_refs(blocks)):
            found[ref] = f"{self._base}/blobs/{quote(ref, safe='')}?task={quote(task_id, safe='')}"
            try:
                size = (await state.blobs.stat(ref)).size_bytes
                if size <= INLINE_BYTES and room.take(size):
                    found[ref] = await state.blobs.resolve(ref)
            except NotFoundError:
                # The blob has expired: a request for its URL gets that error.
                continue
        return found


async def _has_file(call: Call, task_id: str, ref: str) -> bool:
    """Return whether a task that the caller may read contains a file."""
    ledger = call.state.tasks
    task = await ledger.get(task_id, owner=call.reads, max_bytes=PAGE_BYTES)
    if task is None or ref in blob_refs(blocks_of(task)):
        return task is not None
    after = 0 if task.truncated else task.version
    # A record that is too large to be read at once is truncated: read its events in pages.
    while page := await ledger.events(
        task_id, after_seq=after, limit=100, owner=call.reads, max_bytes=PAGE_BYTES
    ):
        bodies = [one.body for one in page]
        said = [one.content for one in bodies if isinstance(one, ChatMessage)]
        made = [one.parts for one in bodies if isinstance(one, ArtifactChunk)]
        if ref in blob_refs(block for blocks in said + made for block in blocks):
            return True
        after = page[-1].seq
    return False


async def download(request: Request) -> Response:
    """Serve ``GET /blobs/{ref}?task=ID``: a file of a task that the caller may read."""
    call: Call = request.scope[CALL]
    ref, task_id = request.path_params["ref"], request.query_params.get("task", "")
    try:
        if not await _has_file(call, task_id, ref):
            return JSONResponse(NOT_FOUND, status_code=404)
        info = await call.state.blobs.stat(ref)
    except (NotFoundError, InvalidInputError):
        return JSONResponse(NOT_FOUND, status_code=404)
    except HoldfastError as error:
        answered, hint = to_a2a(error)
        code = hint.status if hint else 500
        body = {"error": {"code": code, "message": answered.message}}
        return JSONResponse(body, status_code=code, headers=hint.headers if hint else None)
    return StreamingResponse(
        call.state.blobs.open(ref),
        media_type=info.content_type,
        headers={
            "Content-Length": str(info.size_bytes),
            "Content-Disposition": "attachment",
            "Cache-Control": "private, no-store",
            "X-Content-Type-Options": "nosniff",
            "ETag": f'"{info.sha256}"',
        },
    )
