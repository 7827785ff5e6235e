"""The writes of workers in memory: messages, steps and artifacts."""

from __future__ import annotations

from dataclasses import replace

from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.engines.inmemory.tasks.view import LedgerView
from holdfast.spi.tasks.conflicts import last_chunk_written, no_message, other_arguments
from holdfast.spi.tasks.records import TaskKey, WrittenChunk
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage, StoredStep
from holdfast.spi.tasks.workers import ProgressStorage, StepDraft
from holdfast.values.lifecycle import Actor
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease


class InMemoryProgress(LedgerView, ProgressStorage):
    """Stores the messages, steps and artifacts that workers write."""

    async def append_message(
        self, lease: Lease, message: StoredMessage, step: StepDraft | None
    ) -> StoredMessage:
        """Store a message with its step, unless they are stored already."""
        row = self._held(lease)
        if step is not None and step.key in row.steps:
            if row.said[step.key] not in row.messages:
                raise no_message(step.key)
            return row.messages[row.said[step.key]]
        if not self._known(row, message):
            self._say(row, message, Actor.WORKER)
        if step is not None:
            self._keep(row, step, Actor.WORKER)
        return row.messages[message.id]

    async def record_step(self, lease: Lease, step: StepDraft) -> StoredStep:
        """Store a step, unless it is stored already."""
        row = self._held(lease)
        stored = row.steps.get(step.key)
        if stored is None:
            self._keep(row, step, Actor.WORKER)
        elif step.digest and stored.digest and step.digest != stored.digest:
            raise other_arguments(step.key)
        return row.steps[step.key]

    async def steps(self, task_id: str) -> list[StoredStep]:
        """Return the steps of a task, in order."""
        row = self._find(task_id, None)
        return [] if row is None else list(row.steps.values())

    async def append_chunk(self, lease: Lease, chunk: StoredChunk) -> StoredChunk:
        """Store a chunk of an artifact."""
        row = self._held(lease)
        last = self._last(row, chunk.artifact_id)
        if chunk.append and last is not None and last.last_chunk:
            raise last_chunk_written(chunk.artifact_id)
        return self._write(row, chunk)

    def _last(self, row: TaskRow, artifact_id: str) -> StoredChunk | None:
        """Return the last chunk that this attempt wrote to an artifact, or ``None``."""
        held = row.chunks.get(artifact_id, [])
        return held[-1][0] if held and held[-1][0].fence == row.fence else None

    def _write(self, row: TaskRow, chunk: StoredChunk) -> StoredChunk:
        """Add a chunk; the first chunk of an attempt restarts the artifact."""
        goes_on = chunk.append and self._last(row, chunk.artifact_id) is not None
        stored = replace(chunk, append=goes_on, fence=row.fence)
        if not goes_on:
            # The dict keeps the order: a known artifact stays at its position.
            row.chunks[chunk.artifact_id] = []
        now = self._engine.now()
        row.chunks[chunk.artifact_id].append((stored, now))
        if stored.step is not None:
            row.step_chunks.setdefault((stored.step, row.fence), []).append(stored)
        self._log(row, Actor.WORKER, stored, now)
        return stored

    async def restore_chunks(self, lease: Lease, step: StepKey) -> list[StoredChunk]:
        """Store the chunks of a recorded step again in this attempt, once per fence."""
        row = self._held(lease)
        stored = row.steps.get(step)
        if stored is None or (step, row.fence) in row.step_chunks:
            return []
        chunks = row.step_chunks.get((step, stored.fence), [])
        return [self._write(row, chunk) for chunk in list(chunks)]

    async def chunks(self, key: TaskKey, artifact_id: str | None) -> list[WrittenChunk]:
        """Return the current chunks of a task's artifacts, or of one artifact."""
        row = self._find(*key)
        if row is None:
            return []
        return row.all_chunks() if artifact_id is None else list(row.chunks.get(artifact_id, []))
