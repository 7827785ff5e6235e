"""What all parts of the ledger on Postgres share."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tasks.rows import to_task
from holdfast.engines.postgres.tasks.work import Doorbell, requests_topic
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepKey


class LedgerView:
    """A view on one tenant's tasks.

    Whatever is sent twice after an answer was lost, the database takes once: such statements are
    ``safe``, since messages, steps, feedback and new tasks have ids of their own.
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    def _queued(self, row: Any) -> TaskSnapshot:
        """The task; workers are notified if it is in the queue."""
        found = to_task(row)
        if found.task.state is TaskState.SUBMITTED:
            self._engine.singleton(Doorbell).ring()
        return found

    def _requested(self, row: Any) -> TaskSnapshot:
        """The task; workers are notified if it is in the queue, and the one that holds it."""
        found = self._queued(row)
        if found.task.state is TaskState.WORKING:
            self._engine.singleton(Doorbell).ring(requests_topic(found.task.worker))
        return found


def moment(when: datetime | timedelta | None) -> tuple[datetime | None, float | None]:
    """A moment, or how many seconds it is from the database's now."""
    if isinstance(when, timedelta):
        return None, when.total_seconds()
    return when, None


def message_columns(
    message: StoredMessage | None,
) -> tuple[str | None, datetime | None, str | None, str | None]:
    """What the database stores of a message, or of none."""
    if message is None:
        return None, None, None, None
    return message.id, message.created_at, message.payload, message.digest()


def step_columns(key: StepKey | None) -> tuple[str | None, str | None, int | None]:
    """What the database stores of a step's key, or of none."""
    return (None, None, None) if key is None else (key.kind, key.name, key.occurrence)
