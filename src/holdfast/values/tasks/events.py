"""The entries of a task's timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from holdfast.values.checks import check_count, check_id
from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.errors import InvalidInputError
from holdfast.values.lifecycle import Actor, TaskState

TRY = "try"
"""The kind of a step that stores a failed try of another step."""

HISTORY = "history"
"""The kind of a step that stores the ids of messages in a transcript; its name is their digest."""

EventKind: TypeAlias = Literal["transition", "request", "message", "step", "artifact"]


@dataclass(frozen=True, slots=True)
class StepKey:
    """The key of one stored step of a task: its name, and a count of steps with that name.

    ``kind`` separates the names of steps, failed tries of them (``try``), questions (``ask``),
    remarks (``say``), sleeps and appends to the transcript (``history``).

    >>> StepKey("fetch") == StepKey("fetch", occurrence=1, kind="step")
    True
    >>> str(StepKey("fetch", 2))
    'step:fetch:2'
    """

    name: str
    occurrence: int = 1
    kind: str = "step"

    def __post_init__(self) -> None:
        check_id("step.name", self.name)
        check_id("step.kind", self.kind)
        if check_count("step.occurrence", self.occurrence) == 0:
            raise InvalidInputError("step.occurrence", "must be 1 or more")

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}:{self.occurrence}"


@dataclass(frozen=True, slots=True)
class Transition:
    """One row of the append-only log of state changes; ``seq`` runs from 1 without a gap.

    >>> from datetime import UTC
    >>> born = Transition("t1", 1, None, TaskState.SUBMITTED, datetime.now(UTC), Actor.CLIENT)
    >>> born.to_state.value
    'submitted'
    """

    task_id: str
    seq: int
    from_state: TaskState | None
    to_state: TaskState
    at: datetime
    by: Actor
    worker: str = ""
    """The worker that got or had the lease; empty if no worker was involved."""

    fence: int = 0
    attempt: int = 0
    """The task's ``attempts`` after this change."""

    note: str = ""
    run_after: datetime | None = None
    """The task cannot be claimed before this time."""

    message_id: str = ""
    """The id of the message that explains this change, such as the question that was asked."""

    app_version: str = ""
    """If this is a claim: the version of the worker's app."""


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A client's request that was stored because the task could not be stopped at once.

    >>> TaskRequest("cancel").what
    'cancel'
    """

    what: Literal["cancel", "pause", "resume"]
    note: str = ""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The stored result of a step, so that it never runs again.

    ``digest`` is the digest of its arguments; ``fence`` is the fence of the claim that ran it.

    >>> from datetime import UTC
    >>> StepRecord("t1", StepKey("fetch"), {"pages": 3}, datetime.now(UTC)).result
    {'pages': 3}
    """

    task_id: str
    key: StepKey
    result: Any
    stored_at: datetime
    digest: str = ""
    fence: int = 0
    chunks: int = 0
    """How many artifact chunks the step wrote."""

    started_at: datetime | None = None
    """When the step began, by the ledger's clock; ``None`` if that was not reported."""


@dataclass(frozen=True, slots=True)
class ArtifactChunk:
    """One chunk of an artifact, as in a stream.

    ``append=False`` starts the artifact again; ``append=True`` continues after the last chunk.

    >>> from holdfast.values.content import TextBlock
    >>> ArtifactChunk("summary.md", [TextBlock("# Tides")]).append
    False
    """

    artifact_id: str
    parts: list[ContentBlock]
    append: bool = False
    last_chunk: bool = False
    name: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    step: StepKey | None = None
    """The step it was written in."""

    fence: int = 0


EventBody: TypeAlias = Transition | TaskRequest | ChatMessage | StepRecord | ArtifactChunk

_KINDS: dict[type[object], EventKind] = {
    Transition: "transition",
    TaskRequest: "request",
    ChatMessage: "message",
    StepRecord: "step",
    ArtifactChunk: "artifact",
}


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """One entry of a task's timeline; ``seq`` runs from 1 without a gap and is a stream's cursor.

    >>> from datetime import UTC
    >>> said = ChatMessage.assistant("hello")
    >>> TaskEvent("t1", 3, datetime.now(UTC), Actor.WORKER, 1, said).kind
    'message'
    """

    task_id: str
    seq: int
    at: datetime
    by: Actor
    fence: int
    """The task's fence at that time: for a worker's writes, that of the claim that wrote it."""

    body: EventBody
    by_name: str = ""
    """Who did it, as the caller of a request named them; empty if nobody was named."""

    @property
    def kind(self) -> EventKind:
        """The kind of the entry.

        >>> from datetime import UTC
        >>> TaskEvent("t1", 1, datetime.now(UTC), Actor.CLIENT, 0, TaskRequest("pause")).kind
        'request'
        """
        return _KINDS[type(self.body)]
