"""What is reported of a task that somebody else runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from holdfast.values.content import ChatMessage
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import ArtifactChunk


@dataclass(frozen=True, slots=True)
class StatusReport:
    """A new status of a task that was adopted.

    >>> StatusReport(TaskState.COMPLETED).message is None
    True
    """

    state: TaskState | str
    message: ChatMessage | None = None
    """The message that explains it, such as a question."""

    note: str = ""
    at: datetime | None = None
    """When it changed, which listings sort by; by default the engine's current time."""

    metadata: dict[str, Any] | None = None
    """Replaces the metadata of the task; by default it stays as it is."""


Report: TypeAlias = StatusReport | ChatMessage | ArtifactChunk
"""What can be recorded of an adopted task."""
