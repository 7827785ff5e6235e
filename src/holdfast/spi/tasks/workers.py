"""What workers do with tasks, as an engine stores it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple, Protocol

from holdfast.spi.tasks.records import TaskKey, TaskSnapshot, WrittenChunk
from holdfast.spi.tasks.stored import StoredChunk, StoredMessage, StoredStep
from holdfast.values.errors import ConflictError, LeaseLostError
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.records import Lease


class TaskClaim(NamedTuple):
    """Which tasks a worker claims, and for how long. ``agents`` of ``None`` means all.

    A task that began with a version of its handler is claimed only if ``versions`` has it for the
    agent. A task without one gets the first version of its agent, if it has any.
    """

    worker: str
    agents: Collection[AgentId] | None
    limit: int
    lease_seconds: float
    serial_contexts: bool
    history_length: int | None
    limits: Sequence[Limit] = ()
    versions: Mapping[str, Sequence[str]] = MappingProxyType({})
    app_version: str = ""


class Outcome(NamedTuple):
    """The result that a worker reports; a ``timedelta`` counts from the engine's current time.

    ``form`` is the form that the answer to ``ask`` must have, ``result`` the result of a completed
    task, as JSON text. A task that becomes ``submitted`` with ``children`` or a ``topic`` waits: it
    is due when all these children of it have ended, or the topic has a message, or at
    ``run_after``. It does not wait for children that do not exist or have ended, or for a topic
    that has a message.
    """

    to: TaskState
    message: StoredMessage | None
    note: str
    run_after: datetime | timedelta | None
    progress: bool
    ask: StepKey | None
    form: str | None = None
    result: str | None = None
    children: Sequence[str] = ()
    topic: str | None = None


class Completed(NamedTuple):
    """The end of a task as ``completed``; ``result`` is JSON text."""

    lease: Lease
    message: StoredMessage | None = None
    result: str | None = None

    @property
    def outcome(self) -> Outcome:
        """The same, as ``transition`` takes it."""
        return Outcome(
            *(TaskState.COMPLETED, self.message, "", None, False, None), result=self.result
        )


class StepDraft(NamedTuple):
    """The result of a step; ``message_id`` is the message that the result names, or empty.

    ``seconds`` is how long the step took. A step of the kind ``try`` does not count as progress.
    """

    key: StepKey
    result: str
    digest: str
    message_id: str
    seconds: float | None = None


class LeaseStorage(Protocol):
    """The queue and the leases of one tenant's tasks. The caller checks all arguments.

    A call with a lease raises ``LeaseLostError``, with nothing written, unless the task is
    ``working`` under the fence of the lease. A task that leaves ``working`` goes to ``canceled`` if
    that was requested, whatever is reported; one that would go to ``submitted`` fails at
    ``max_attempts``, or is ``paused`` if that was requested.
    """

    @abstractmethod
    async def claim(self, claim: TaskClaim) -> list[TaskSnapshot]:
        """Claim tasks that are due, the longest waiting first; each gets its next fence number.

        With ``serial_contexts`` at most one task of each context is claimed, and none of a context
        that has a running task.
        """

    @abstractmethod
    async def heartbeat(self, lease: Lease, lease_seconds: float) -> Lease:
        """Extend a lease from now. Returns it, with the requests of clients to cancel or pause."""

    @abstractmethod
    async def transition(self, lease: Lease, outcome: Outcome) -> TaskSnapshot:
        """End or suspend the run of a task. A message that is already stored is not stored again.

        Raises ``IllegalTransitionError`` if the lifecycle does not allow it, and ``ConflictError``
        if the stored message has another body or the question is already answered.
        """

    @abstractmethod
    async def complete_many(self, ends: Sequence[Completed]) -> Mapping[str, TaskState]:
        """Complete tasks. Returns their new states by id.

        Those whose lease was lost, or whose message has the id of another one of the task, are left
        as they are, and are not in what is returned.
        """

    async def complete_each(self, ends: Iterable[Completed]) -> dict[str, TaskState]:
        """Do what ``complete_many`` does, one by one."""
        reached = {}
        for one in ends:
            with suppress(LeaseLostError, ConflictError):
                ended = await self.transition(one.lease, one.outcome)
                reached[one.lease.task_id] = ended.task.state
        return reached

    @abstractmethod
    async def release(self, lease: Lease, note: str) -> TaskSnapshot:
        """Return a task to its position in the queue, without counting an attempt."""

    @abstractmethod
    async def recover_expired(self, limit: int) -> list[TaskSnapshot]:
        """Return tasks with an expired lease to the queue, the longest expired first.

        They keep their position in the queue. If the clock was set back, a lease may end later than
        its duration from now. It is then shortened to that duration.
        """


class ProgressStorage(Protocol):
    """What workers write, under a lease as in ``LeaseStorage``. The caller checks all arguments."""

    @abstractmethod
    async def append_message(
        self, lease: Lease, message: StoredMessage, step: StepDraft | None
    ) -> StoredMessage:
        """Store a message, unless the task has it, and its step. Returns the stored message.

        If the step is already stored, nothing is written and the message that it names is returned.
        Raises ``ConflictError`` if it names none.
        """

    @abstractmethod
    async def record_step(self, lease: Lease, step: StepDraft) -> StoredStep:
        """Store a step, unless it is stored. Returns the stored step. A new one counts as progress.

        Raises ``ConflictError`` if both have a digest and the digests differ.
        """

    @abstractmethod
    async def steps(self, task_id: str) -> list[StoredStep]:
        """Return the steps of a task, in the order they were stored."""

    @abstractmethod
    async def append_chunk(self, lease: Lease, chunk: StoredChunk) -> StoredChunk:
        """Store a chunk of an artifact. Returns it with the fence and whether it was appended.

        The first chunk of an attempt replaces what the artifact held. Raises ``ConflictError`` if a
        chunk is appended after the one that this attempt wrote as the last.
        """

    @abstractmethod
    async def restore_chunks(self, lease: Lease, step: StepKey) -> list[StoredChunk]:
        """Store the chunks of a stored step again for this attempt, once. Returns them."""

    @abstractmethod
    async def chunks(self, key: TaskKey, artifact_id: str | None) -> Sequence[WrittenChunk]:
        """Return the chunks of all artifacts of a task, or of one artifact.

        Artifacts are in the order they were begun, the chunks of each next to each other.
        """
