"""What a worker writes while it works: messages, steps and artifacts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.tasks.checks import check_lease, check_step, message_named
from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.spi.tasks.records import load_artifacts
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.checks import check_id, check_list, check_seconds, check_text
from holdfast.values.codec import blocks_to_json, decode_json, encode_json, encode_object
from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.owners import Owner
from holdfast.values.tasks.events import ArtifactChunk, StepKey, StepRecord
from holdfast.values.tasks.records import Artifact, Lease


@runtime_checkable
class ProgressLedger(Protocol):
    """The output of a task, and the steps that a resumed handler does not repeat.

    Every write needs the lease, and raises ``LeaseLostError`` once it is lost (see
    ``LeaseLedger``). Each write adds one thing; nothing is ever rewritten.

    A step is stored once under its key (kind, name, occurrence); the first stored wins. Storing one
    is progress: it resets the task's ``attempts`` to 0. A step of the kind ``try``, which stores a
    failed try of another step, is no progress.

    Artifact chunks belong to their attempt: the first chunk that a later attempt writes to an
    artifact replaces what it held, so that an artifact never mixes the chunks of two attempts. This
    does not lose a chunk that was written in a step: when the resumed handler skips the stored
    step, ``restore_artifacts`` writes the step's chunks again at that point.

    Promises:

    - messages of a worker are in the history in order
    - the same message id again is appended once
    - the same message id with another body is a conflict and nothing is written
    - a message under a step key is appended once, the first stored wins
    - a step's result comes back exactly as it went in
    - the first stored result of a step wins
    - the same step with other arguments is a conflict and nothing is written
    - a step without a digest is not compared
    - kind, name and occurrence keep steps apart
    - steps come in the order they were stored
    - an unknown task has no steps
    - a step stored again is no progress
    - a stored step sets the attempts back
    - a result that is not json is refused by its path and nothing is written
    - a step says when it was started
    - a failed try of a step is in the timeline and is no progress
    - 20 concurrent results of one step store one
    - 50 concurrent messages are all in the history
    - every kind of content block survives in an artifact
    - chunks of one attempt follow each other
    - a chunk without append begins the artifact anew
    - the first chunk of an artifact is never an append
    - the last chunk makes the artifact complete
    - nothing is appended after the last chunk of an attempt
    - an artifact keeps the name and the metadata that a chunk last gave
    - the first chunk of a later attempt replaces what an earlier attempt wrote
    - chunks of a stored step are put back among those of a later attempt
    - chunks of a step are put back once in an attempt
    - a step that is not stored has no chunks to put back
    - a stored step says how many chunks were written in it
    - artifacts come in the order they were begun
    - an artifact is found by its id
    - an unknown artifact is none
    - another owner's artifacts are not found
    - one tenant never sees another's artifacts and steps
    - steps and artifacts are still there after a reopen
    - an artifact and a step that a store returns are the caller's to mutate
    - parts and results that a caller passed in may be changed afterwards
    """

    @abstractmethod
    async def append_message(
        self, lease: Lease, message: ChatMessage, *, step: StepKey | None = None
    ) -> ChatMessage:
        """Add a message to the task and return it as stored.

        A retry with the same id and body has no effect. With ``step``, the message is stored once
        under that key: a resumed handler that appends it again, with whatever text, gets the first
        one back.

        ::

            await ledger.append_message(lease, ChatMessage.assistant("half way"))
        """
        ...

    @abstractmethod
    async def record_step(
        self,
        lease: Lease,
        key: StepKey,
        result: Any,
        *,
        digest: str = "",
        seconds: float | None = None,
    ) -> StepRecord:
        """Store the result of a step, and return the one that is stored: the first wins.

        ``digest`` is that of the step's arguments. Raises ``ConflictError`` if the stored step has
        another digest. ``seconds`` is how long the step took: its ``started_at`` is that long
        before now.

        ::

            kept = await ledger.record_step(lease, StepKey("fetch"), pages, digest=digest)
        """
        ...

    @abstractmethod
    async def steps(self, task_id: str) -> list[StepRecord]:
        """Return the stored steps of a task, for its worker, in the order they were stored.

        The answer to a question is a step as well: its kind is ``ask``, and its result names the
        message, ``{"message_id": ...}``. So is a message appended under a key.

        ::

            done = {step.key: step.result for step in await ledger.steps(task.id)}
        """
        ...

    @abstractmethod
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
        """Write a chunk of an artifact. Returns it as it appears in a stream.

        Without ``append`` it replaces what the artifact held. ``step`` names the step in which it
        is written. Appending after the last chunk raises ``ConflictError``.

        ::

            await ledger.append_artifact(lease, "summary.md", [TextBlock("# Tides")])
            await ledger.append_artifact(lease, "summary.md", more, append=True, last_chunk=True)
        """
        ...

    @abstractmethod
    async def restore_artifacts(self, lease: Lease, step: StepKey) -> list[ArtifactChunk]:
        """Write the artifact chunks of a stored step again in this attempt, and return them.

        Call it when a resumed handler skips the step. It writes nothing and returns an empty list
        if this attempt ran the step, or has restored its chunks before.

        ::

            for step in await ledger.steps(task.id):
                if step.chunks:
                    await ledger.restore_artifacts(lease, step.key)
        """
        ...

    @abstractmethod
    async def artifacts(self, task_id: str, *, owner: Owner = None) -> list[Artifact]:
        """Return the artifacts of a task, in the order they were begun.

        ::

            [summary] = await ledger.artifacts(task.id)
        """
        ...

    @abstractmethod
    async def get_artifact(
        self, task_id: str, artifact_id: str, *, owner: Owner = None
    ) -> Artifact | None:
        """Return one artifact of a task, or ``None``.

        ::

            summary = await ledger.get_artifact(task.id, "summary.md")
        """
        ...


class ProgressCalls(LedgerCalls, ProgressLedger):
    """Implements ``ProgressLedger``: checks the arguments, then calls the engine's storage."""

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
        self,
        lease: Lease,
        key: StepKey,
        result: Any,
        *,
        digest: str = "",
        seconds: float | None = None,
    ) -> StepRecord:
        """Store the result of a step, and return the one that is stored: the first wins."""
        check_step(key)
        took = None if seconds is None else check_seconds("seconds", seconds)
        text = encode_json(result, field="result")
        named = message_named(decode_json(text))
        step = StepDraft(key, text, check_text("digest", digest), named, took)
        return (await self._storage.record_step(check_lease(lease), step)).load(lease.task_id)

    async def steps(self, task_id: str) -> list[StepRecord]:
        """Return the stored steps of a task, for its worker, in the order they were stored."""
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
        """Write a chunk of an artifact. Returns it as it appears in a stream."""
        chunk = check_chunk(
            "",
            artifact_id,
            parts,
            name=name,
            metadata=metadata,
            append=append,
            last_chunk=last_chunk,
            step=None if step is None else check_step(step),
        )
        return (await self._storage.append_chunk(check_lease(lease), chunk)).load()

    async def restore_artifacts(self, lease: Lease, step: StepKey) -> list[ArtifactChunk]:
        """Write the chunks of a stored step again in this attempt, and return them."""
        key = check_step(step)
        found = await self._storage.restore_chunks(check_lease(lease), key)
        return [chunk.load() for chunk in found]

    async def artifacts(self, task_id: str, *, owner: Owner = None) -> list[Artifact]:
        """Return the artifacts of a task, in the order they were begun."""
        found = await self._storage.chunks(task_key(task_id, owner), None)
        return load_artifacts(task_id, found)

    async def get_artifact(
        self, task_id: str, artifact_id: str, *, owner: Owner = None
    ) -> Artifact | None:
        """Return one artifact of a task, or ``None``."""
        key, name = task_key(task_id, owner), check_id("artifact_id", artifact_id)
        found = load_artifacts(task_id, await self._storage.chunks(key, name))
        return found[0] if found else None


def check_chunk(
    path: str,
    artifact_id: object,
    parts: object,
    *,
    name: object,
    metadata: object,
    append: object,
    last_chunk: object,
    step: StepKey | None = None,
) -> StoredChunk:
    """Check a chunk of an artifact and encode it; ``path`` is the prefix of fields in errors.

    >>> check_chunk("", "a1", [], name="", metadata=None, append=False, last_chunk=False).parts
    '[]'
    """
    blocks = list[Any](check_list(f"{path}parts", parts))
    return StoredChunk(
        check_id(f"{path}artifact_id", artifact_id),
        encode_json(blocks_to_json(blocks, field=f"{path}parts"), field=f"{path}parts"),
        bool(append),
        bool(last_chunk),
        check_text(f"{path}name", name),
        encode_object({} if metadata is None else metadata, field=f"{path}metadata"),
        step,
    )
