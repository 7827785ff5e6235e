"""A task to be submitted together with others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.identity import Agent
from holdfast.values.tasks.records import MAX_ATTEMPTS

MAX_TASKS_PER_CALL = 1000
"""How many tasks one ``submit_many`` takes."""

MAX_BYTES_PER_CALL = 16 << 20
"""How many bytes their messages and metadata may have together, as JSON text."""


@renamed(context_id="session_id")
@dataclass(frozen=True, slots=True)
class NewTask:
    """A task for ``tasks.submit_many``; the fields are the arguments of ``tasks.submit``.

    >>> NewTask("writer", ChatMessage.user("Tides of Brest?"), priority=5).max_attempts
    5
    """

    agent: Agent
    message: ChatMessage
    session_id: str | None = None
    metadata: dict[str, Any] | None = None
    submit_key: str | None = None
    max_attempts: int = MAX_ATTEMPTS
    run_after: datetime | timedelta | None = None
    priority: int = 0
    key: str | None = None
