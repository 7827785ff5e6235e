"""The writes of workers on Postgres: messages, steps and artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_chunk, to_chunks, to_step
from holdfast.engines.postgres.tasks.view import LedgerView, message_columns, step_columns
from holdfast.spi.tasks.records import TaskKey, WrittenChunk
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage, StoredStep
from holdfast.spi.tasks.workers import ProgressStorage, StepDraft
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease

_SQL = load("ledger_progress")


class PostgresProgress(LedgerView, ProgressStorage):
    """Stores the messages, steps and artifacts that workers write."""

    async def append_message(
        self, lease: Lease, message: StoredMessage, step: StepDraft | None
    ) -> StoredMessage:
        """Store a message with its step, unless they are stored already."""
        remark = () if step is None else (*step_columns(step.key), step.result)
        row = await self._engine.fetchrow(
            _SQL["append_remark"] if remark else _SQL["append_message"],
            *(self._tenant, lease.task_id, lease.fence, *message_columns(message), *remark),
            safe=True,
        )
        # The database does not send back a body that it stored as given.
        body = message.payload if row["out_body"] is None else row["out_body"]
        return StoredMessage(row["out_id"], row["out_at"], body, row["out_seq"])

    async def record_step(self, lease: Lease, step: StepDraft) -> StoredStep:
        """Store a step, unless it is stored already."""
        row = await self._engine.fetchrow(
            _SQL["record_step"],
            *(self._tenant, lease.task_id, lease.fence),
            *step_columns(step.key),
            *(step.result, encode_json(step.digest), step.message_id, step.seconds),
            safe=True,
        )
        return StoredStep(
            step.key,
            # The database does not send back a result that it stored as given.
            step.result if row["out_body"] is None else row["out_body"],
            row["out_at"],
            decode_json(row["out_digest"]),
            row["out_fence"],
            row["out_chunks"],
            row["out_started_at"],
        )

    async def steps(self, task_id: str) -> list[StoredStep]:
        """Return the steps of a task, in order."""
        rows = await self._engine.fetch(_SQL["steps"], self._tenant, task_id, safe=True)
        return [to_step(row) for row in rows]

    async def append_chunk(self, lease: Lease, chunk: StoredChunk) -> StoredChunk:
        """Store a chunk of an artifact."""
        goes_on = await self._engine.fetchval(
            _SQL["append_artifact"],
            *(self._tenant, lease.task_id, lease.fence, chunk.artifact_id, chunk.parts),
            *(chunk.append, chunk.last_chunk, encode_json(chunk.name), chunk.metadata),
            *step_columns(chunk.step),
            safe=False,
        )
        return replace(chunk, append=goes_on, fence=lease.fence)

    async def restore_chunks(self, lease: Lease, step: StepKey) -> list[StoredChunk]:
        """Store the chunks of a recorded step again in this attempt, once per fence."""
        rows = await self._engine.fetch(
            _SQL["restore_artifacts"],
            *(self._tenant, lease.task_id, lease.fence, *step_columns(step)),
            safe=False,
        )
        return [to_chunk(row) for row in rows]

    async def chunks(self, key: TaskKey, artifact_id: str | None) -> Sequence[WrittenChunk]:
        """Return the current chunks of a task's artifacts, or of one artifact."""
        row = await self._engine.fetchrow(
            _SQL["artifacts"], self._tenant, *key, artifact_id, safe=True
        )
        return () if row is None or row["chunk_artifacts"] is None else to_chunks(row)
