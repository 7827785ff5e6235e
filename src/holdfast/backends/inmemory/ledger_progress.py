"""What workers write to the in-memory ledger: messages, steps and artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.backends.inmemory.ledger_data import TaskRow
from holdfast.backends.inmemory.ledger_view import LedgerView
from holdfast.kernel.core.checks import check_id, check_text
from holdfast.kernel.core.codec import decode_json, encode_json
from holdfast.kernel.core.content import ChatMessage, ContentBlock
from holdfast.kernel.core.errors import ConflictError
from holdfast.kernel.core.lifecycle import Actor
from holdfast.kernel.storage.ledger_events import ArtifactChunk, StepKey, StepRecord
from holdfast.kernel.storage.ledger_input import check_chunk, check_step, message_named
from holdfast.kernel.storage.ledger_progress import ProgressLedger
from holdfast.kernel.storage.ledger_records import Artifact, Lease
from holdfast.kernel.storage.ledger_stored import StoredChunk, StoredMessage


class InMemoryProgress(LedgerView, ProgressLedger):
    """``ProgressLedger`` in the process."""

    async def append_message(
        self, lease: Lease, message: ChatMessage, *, step: StepKey | None = None
    ) -> ChatMessage:
        """Add a message to the task and return it as stored."""
        said = StoredMessage.of(message)
        key = None if step is None else check_step(step)
        row = self._held(lease)
        if key in row.steps:
            return row.load_message(_said(row, key))
        if not self._known(row, said):
            self._say(row, said, Actor.WORKER)
        if key is not None:
            result = encode_json({"message_id": said.id})
            self._keep(row, key, result, digest="", by=Actor.WORKER)
        return row.load_message(said.id)

    async def record_step(
        self, lease: Lease, key: StepKey, result: Any, *, digest: str = ""
    ) -> StepRecord:
        """Store the result of a step, and return the one that is stored: the first wins."""
        check_step(key)
        text = encode_json(result, field="result")
        check_text("digest", digest)
        row = self._held(lease)
        stored = row.steps.get(key)
        if stored is None:
            self._keep(row, key, text, digest=digest, by=Actor.WORKER)
        elif digest and stored.digest and digest != stored.digest:
            raise ConflictError(
                "step", str(key), f"{key} is stored for other arguments: give it another name"
            )
        return row.steps[key].load(row.id)

    async def steps(self, task_id: str) -> list[StepRecord]:
        """The stored steps of a task, for its worker, in the order they were stored."""
        row = self._find(task_id, None)
        return [] if row is None else [step.load(row.id) for step in row.steps.values()]

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
        row = self._held(lease)
        last = self._last(row, artifact_id)
        if chunk.append and last is not None and last.last_chunk:
            raise ConflictError(
                "artifact",
                artifact_id,
                f"artifact {artifact_id!r} has its last chunk: begin it anew to change it",
            )
        return self._write(row, chunk).load()

    def _last(self, row: TaskRow, artifact_id: str) -> StoredChunk | None:
        """The last chunk that this attempt wrote to an artifact."""
        held = row.chunks.get(artifact_id, [])
        return held[-1][0] if held and held[-1][0].fence == row.fence else None

    def _write(self, row: TaskRow, chunk: StoredChunk) -> StoredChunk:
        """Add a chunk; the first of an attempt begins the artifact anew."""
        goes_on = chunk.append and self._last(row, chunk.artifact_id) is not None
        stored = replace(chunk, append=goes_on, fence=row.fence)
        if not goes_on:
            # The dict keeps the place of an artifact that was there before.
            row.chunks[chunk.artifact_id] = []
        now = self._engine.now()
        row.chunks[chunk.artifact_id].append((stored, now))
        if stored.step is not None:
            row.step_chunks.setdefault((stored.step, row.fence), []).append(stored)
        self._log(row, Actor.WORKER, stored, now)
        return stored

    async def restore_artifacts(self, lease: Lease, step: StepKey) -> list[ArtifactChunk]:
        """Write the chunks of a stored step again in this attempt; they are returned."""
        check_step(step)
        row = self._held(lease)
        stored = row.steps.get(step)
        if stored is None or (step, row.fence) in row.step_chunks:
            return []
        chunks = row.step_chunks.get((step, stored.fence), [])
        return [self._write(row, chunk).load() for chunk in list(chunks)]

    async def artifacts(self, task_id: str, *, owner: str | None = "") -> list[Artifact]:
        """The artifacts of a task, in the order they were begun."""
        row = self._find(task_id, owner)
        return [] if row is None else [row.load_artifact(one) for one in row.chunks]

    async def get_artifact(
        self, task_id: str, artifact_id: str, *, owner: str | None = ""
    ) -> Artifact | None:
        """One artifact of a task, or ``None``."""
        check_id("artifact_id", artifact_id)
        row = self._find(task_id, owner)
        known = row is not None and artifact_id in row.chunks
        return row.load_artifact(artifact_id) if row is not None and known else None


def _said(row: TaskRow, key: StepKey) -> str:
    """The message that was stored under a step key."""
    message_id = message_named(decode_json(row.steps[key].result))
    if message_id not in row.messages:
        raise ConflictError("step", str(key), f"{key} is stored, and not as a message")
    return message_id
