"""What workers write to the ledger on Postgres: messages, steps and artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.backends.postgres.ledger_rows import to_artifacts, to_chunk, to_step
from holdfast.backends.postgres.ledger_view import LedgerView, message_columns, step_columns
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_id, check_text
from holdfast.kernel.core.codec import decode_json, encode_json
from holdfast.kernel.core.content import ChatMessage, ContentBlock
from holdfast.kernel.storage.ledger_events import ArtifactChunk, StepKey, StepRecord
from holdfast.kernel.storage.ledger_input import (
    check_chunk,
    check_lease,
    check_owner,
    check_step,
    message_named,
)
from holdfast.kernel.storage.ledger_progress import ProgressLedger
from holdfast.kernel.storage.ledger_records import Artifact, Lease
from holdfast.kernel.storage.ledger_stored import StoredMessage, StoredStep

_SQL = load("ledger_progress")


class PostgresProgress(LedgerView, ProgressLedger):
    """``ProgressLedger`` on Postgres."""

    async def append_message(
        self, lease: Lease, message: ChatMessage, *, step: StepKey | None = None
    ) -> ChatMessage:
        """Add a message to the task and return it as stored."""
        said = StoredMessage.of(message)
        key = None if step is None else check_step(step)
        check_lease(lease)
        scope = (self._tenant, lease.task_id, lease.fence)
        if key is None:
            row = await self._engine.fetchrow(
                _SQL["append_message"], *scope, *message_columns(said), safe=True
            )
        else:
            result = encode_json({"message_id": said.id})
            row = await self._engine.fetchrow(
                _SQL["append_remark"],
                *(*scope, *message_columns(said), *step_columns(key), result),
                safe=True,
            )
        # What was stored as it was given is not sent back.
        body = said.payload if row["out_body"] is None else row["out_body"]
        return StoredMessage(row["out_id"], row["out_at"], body).load(row["out_seq"])

    async def record_step(
        self, lease: Lease, key: StepKey, result: Any, *, digest: str = ""
    ) -> StepRecord:
        """Store the result of a step, and return the one that is stored: the first wins."""
        check_step(key)
        text = encode_json(result, field="result")
        arguments = encode_json(check_text("digest", digest))
        check_lease(lease)
        row = await self._engine.fetchrow(
            _SQL["record_step"],
            *(self._tenant, lease.task_id, lease.fence),
            *step_columns(key),
            *(text, arguments, message_named(decode_json(text))),
            safe=True,
        )
        return StoredStep(
            key,
            # What was stored as it was given is not sent back.
            text if row["out_body"] is None else row["out_body"],
            row["out_at"],
            decode_json(row["out_digest"]),
            row["out_fence"],
            row["out_chunks"],
        ).load(lease.task_id)

    async def steps(self, task_id: str) -> list[StepRecord]:
        """The stored steps of a task, for its worker, in the order they were stored."""
        check_id("task_id", task_id)
        rows = await self._engine.fetch(_SQL["steps"], self._tenant, task_id, safe=True)
        return [to_step(row) for row in rows]

    async def append_artifact(
        self,
        lease: Lease,
        artifact_id: str,
        parts: Sequence[ContentBlock],
        *,
        name: str = "",
        metadata: dict[str, Any] | None = None,
        append: bool = False,
        last_chunk: bool = False,
        step: StepKey | None = None,
    ) -> ArtifactChunk:
        """Write a chunk of an artifact and return it as a stream shows it."""
        chunk = check_chunk(
            artifact_id,
            parts,
            name=name,
            metadata=metadata,
            append=append,
            last_chunk=last_chunk,
            step=step,
        )
        check_lease(lease)
        goes_on = await self._engine.fetchval(
            _SQL["append_artifact"],
            *(self._tenant, lease.task_id, lease.fence, chunk.artifact_id, chunk.parts),
            *(bool(chunk.append), bool(chunk.last_chunk), encode_json(chunk.name)),
            chunk.metadata,
            *step_columns(chunk.step),
            safe=False,
        )
        return replace(chunk, append=goes_on, fence=lease.fence).load()

    async def restore_artifacts(self, lease: Lease, step: StepKey) -> list[ArtifactChunk]:
        """Write the chunks of a stored step again in this attempt; they are returned."""
        check_step(step)
        check_lease(lease)
        rows = await self._engine.fetch(
            _SQL["restore_artifacts"],
            *(self._tenant, lease.task_id, lease.fence),
            *step_columns(step),
            safe=False,
        )
        return [to_chunk(row) for row in rows]

    async def artifacts(self, task_id: str, *, owner: str | None = "") -> list[Artifact]:
        """The artifacts of a task, in the order they were begun."""
        return await self._artifacts(task_id, None, owner)

    async def get_artifact(
        self, task_id: str, artifact_id: str, *, owner: str | None = ""
    ) -> Artifact | None:
        """One artifact of a task, or ``None``."""
        check_id("artifact_id", artifact_id)
        return next(iter(await self._artifacts(task_id, artifact_id, owner)), None)

    async def _artifacts(
        self, task_id: str, artifact_id: str | None, owner: str | None
    ) -> list[Artifact]:
        check_id("task_id", task_id)
        row = await self._engine.fetchrow(
            _SQL["artifacts"], self._tenant, task_id, check_owner(owner), artifact_id, safe=True
        )
        return [] if row is None or row["chunk_artifacts"] is None else to_artifacts(row)
