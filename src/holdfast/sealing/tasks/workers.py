"""The calls of workers, with encrypted tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.sealing.tasks.calls import SealedCalls
from holdfast.sealing.tasks.opener import pieces_of_body
from holdfast.sealing.tasks.sealer import check_chunk, check_message, plain_note
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot, WrittenChunk
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage, StoredStep
from holdfast.spi.tasks.workers import (
    Completed,
    LeaseStorage,
    Outcome,
    ProgressStorage,
    StepDraft,
    TaskClaim,
)
from holdfast.values.lifecycle import TaskState
from holdfast.values.sealed import check_unsealed, part_piece
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease


class SealedLeases(SealedCalls, LeaseStorage):
    """Encrypts the outcomes, and decrypts the tasks, of a ``LeaseStorage``."""

    async def claim(self, claim: TaskClaim) -> list[TaskSnapshot]:
        """Claim tasks that are due."""
        return await self._snapshots(await self._inner.claim(claim))

    async def heartbeat(self, lease: Lease, lease_seconds: float) -> Lease:
        """Extend a lease."""
        return await self._inner.heartbeat(lease, lease_seconds)

    async def transition(self, lease: Lease, outcome: Outcome) -> TaskSnapshot:
        """End or suspend the run of a task."""
        check_message(outcome.message)
        check_unsealed("result", outcome.result or "")
        check_unsealed("schema", outcome.form or "")

        async def transition(*, as_before: bool) -> TaskSnapshot:
            sealer = await self._sealer(lease.task_id, as_before=as_before)
            if sealer is None:
                plain = outcome._replace(note=plain_note(outcome.note))
                return await self._inner.transition(lease, plain)
            return await self._inner.transition(lease, sealer.outcome(outcome))

        return await self._snapshot(await self._compared(transition))

    async def complete_many(self, ends: Sequence[Completed]) -> Mapping[str, TaskState]:
        """Complete tasks; with keys, those that have something to encrypt one by one."""
        for one in ends:
            check_message(one.message)
            check_unsealed("result", one.result or "")
        if self._seal.keys is None:
            return await self._inner.complete_many(ends)
        bare = [one for one in ends if one.message is None and one.result is None]
        reached = dict(await self._inner.complete_many(bare)) if bare else {}
        rest = (one for one in ends if one.message is not None or one.result is not None)
        return reached | await self.complete_each(rest)

    async def release(self, lease: Lease, note: str) -> TaskSnapshot:
        """Return a task to its position in the queue."""
        sealed = await self._note(lease.task_id, None, note)
        return await self._snapshot(await self._inner.release(lease, sealed))

    async def recover_expired(self, limit: int) -> list[TaskSnapshot]:
        """Return tasks with an expired lease to the queue."""
        return await self._snapshots(await self._inner.recover_expired(limit))


class SealedProgress(SealedCalls, ProgressStorage):
    """Encrypts what a ``ProgressStorage`` stores."""

    async def append_message(
        self, lease: Lease, message: StoredMessage, step: StepDraft | None
    ) -> StoredMessage:
        """Store a message, and its step."""
        check_message(message)
        if step is not None:
            check_unsealed("result", step.result)

        async def append(*, as_before: bool) -> StoredMessage:
            sealer = await self._sealer(lease.task_id, as_before=as_before)
            if sealer is None:
                return await self._inner.append_message(lease, message, step)
            named = None if step is None else sealer.step(step)
            return await self._inner.append_message(lease, sealer.message(message), named)

        return await self._message(lease.task_id, await self._compared(append))

    async def record_step(self, lease: Lease, step: StepDraft) -> StoredStep:
        """Store a step."""
        check_unsealed("result", step.result)

        async def record(*, as_before: bool) -> StoredStep:
            sealer = await self._sealer(lease.task_id, as_before=as_before)
            return await self._inner.record_step(
                lease, step if sealer is None else sealer.step(step)
            )

        [found] = await self._steps(lease.task_id, [await self._compared(record)])
        return found

    async def steps(self, task_id: str) -> list[StoredStep]:
        """Return the steps of a task."""
        return await self._steps(task_id, await self._inner.steps(task_id))

    async def append_chunk(self, lease: Lease, chunk: StoredChunk) -> StoredChunk:
        """Store a chunk of an artifact."""
        check_chunk(chunk)
        sealer = await self._sealer(lease.task_id)
        found = await self._inner.append_chunk(
            lease, chunk if sealer is None else sealer.chunk(chunk)
        )
        [opened] = await self._chunks(lease.task_id, [found])
        return opened

    async def restore_chunks(self, lease: Lease, step: StepKey) -> list[StoredChunk]:
        """Store the chunks of a stored step again."""
        found = await self._inner.restore_chunks(lease, step)
        return await self._chunks(lease.task_id, found)

    async def chunks(self, key: TaskKey, artifact_id: str | None) -> Sequence[WrittenChunk]:
        """Return the chunks of artifacts."""
        found = await self._inner.chunks(key, artifact_id)
        opener = await self._opener(*key, (part_piece(one.parts) for one, _ in found))
        return found if opener is None else [opener.written(one) for one in found]

    async def _steps(self, task_id: str, steps: Sequence[StoredStep]) -> list[StoredStep]:
        pieces = (piece for one in steps for piece in pieces_of_body(one))
        opener = await self._opener(task_id, None, pieces)
        return list(steps) if opener is None else [opener.step(one) for one in steps]

    async def _chunks(self, task_id: str, chunks: Sequence[StoredChunk]) -> list[StoredChunk]:
        opener = await self._opener(task_id, None, (part_piece(one.parts) for one in chunks))
        return list(chunks) if opener is None else [opener.chunk(one) for one in chunks]
