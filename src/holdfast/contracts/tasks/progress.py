"""What a worker writes while it works: messages, steps and artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.kernel.storage.ledger_events import ArtifactChunk, StepKey, StepRecord
from holdfast.kernel.storage.ledger_input import check_lease, check_step, message_named
from holdfast.kernel.storage.ledger_progress import ProgressLedger
from holdfast.kernel.storage.ledger_records import Artifact, Lease
from holdfast.kernel.storage.ledger_stored import StoredChunk, StoredMessage
from holdfast.spi.tasks_records import load_artifacts
from holdfast.spi.tasks_workers import StepDraft
from holdfast.values.checks import check_id, check_list, check_text
from holdfast.values.codec import blocks_to_json, decode_json, encode_json, encode_object
from holdfast.values.content import ChatMessage, ContentBlock


class ProgressCalls(LedgerCalls, ProgressLedger):
    """``ProgressLedger`` on any engine."""

    async def append_message(
        self, lease: Lease, message: ChatMessage, *, step: StepKey | None = None
    ) -> ChatMessage:
        """Add a message to the task and return it as stored."""
        said, remark = StoredMessage.of(message), None
        if step is not None:
            result = encode_json({"message_id": said.id})
            remark = StepDraft(check_step(step), result, "", said.id)
        return (await self._storage.append_message(check_lease(lease), said, remark)).load()

    async def record_step(
        self, lease: Lease, key: StepKey, result: Any, *, digest: str = ""
    ) -> StepRecord:
        """Store the result of a step, and return the one that is stored: the first wins."""
        check_step(key)
        text = encode_json(result, field="result")
        named = message_named(decode_json(text))
        step = StepDraft(key, text, check_text("digest", digest), named)
        return (await self._storage.record_step(check_lease(lease), step)).load(lease.task_id)

    async def steps(self, task_id: str) -> list[StepRecord]:
        """The stored steps of a task, for its worker, in the order they were stored."""
        found = await self._storage.steps(check_id("task_id", task_id))
        return [step.load(task_id) for step in found]

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
        blocks = list[Any](check_list("parts", parts))
        chunk = StoredChunk(
            check_id("artifact_id", artifact_id),
            encode_json(blocks_to_json(blocks, field="parts"), field="parts"),
            bool(append),
            bool(last_chunk),
            check_text("name", name),
            encode_object({} if metadata is None else metadata, field="metadata"),
            None if step is None else check_step(step),
        )
        return (await self._storage.append_chunk(check_lease(lease), chunk)).load()

    async def restore_artifacts(self, lease: Lease, step: StepKey) -> list[ArtifactChunk]:
        """Write the chunks of a stored step again in this attempt; they are returned."""
        key = check_step(step)
        found = await self._storage.restore_chunks(check_lease(lease), key)
        return [chunk.load() for chunk in found]

    async def artifacts(self, task_id: str, *, owner: str | None = "") -> list[Artifact]:
        """The artifacts of a task, in the order they were begun."""
        found = await self._storage.chunks(task_key(task_id, owner), None)
        return load_artifacts(task_id, found)

    async def get_artifact(
        self, task_id: str, artifact_id: str, *, owner: str | None = ""
    ) -> Artifact | None:
        """One artifact of a task, or ``None``."""
        key, name = task_key(task_id, owner), check_id("artifact_id", artifact_id)
        found = load_artifacts(task_id, await self._storage.chunks(key, name))
        return found[0] if found else None
