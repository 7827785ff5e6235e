"""Cleanup marks: what to delete after a task has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

CleanupKind: TypeAlias = Literal["run", "blob", "file", "artifact"]
"""``run``: the transcript of the task's run in the session ``ref`` of ``agent``, to be cleared.
``blob``: a blob that only the handler reads. ``file``: a blob that may be part of an artifact.
``artifact``: a blob that is part of an artifact, kept for as long as the task is stored."""


@dataclass(frozen=True, slots=True)
class CleanupMark:
    """A blob to release or a transcript to clear when its task has ended.

    >>> CleanupMark("t1", "blob", "b1").ref
    'b1'
    """

    task_id: str
    kind: CleanupKind
    ref: str
    agent: str = ""
