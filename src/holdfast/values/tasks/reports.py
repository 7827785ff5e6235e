"""Reports about adopted tasks, which another system runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from holdfast.values.content import ChatMessage
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import ArtifactChunk


@dataclass(frozen=True, slots=True)
class StatusReport:
    """A new status of an adopted task.

    >>> StatusReport(TaskState.COMPLETED).message is None
    True
    """

    state: TaskState | str
    message: ChatMessage | None = None
    """The message that explains it, such as a question."""

    note: str = ""
    at: datetime | None = None
    """When the status changed; listings sort by it. The default is the engine's current time."""

    metadata: dict[str, Any] | None = None
    """Replaces the metadata of the task; by default it stays as it is."""


Report: TypeAlias = StatusReport | ChatMessage | ArtifactChunk
"""What can be recorded of an adopted task."""
