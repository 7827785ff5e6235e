"""The code that all parts of the ledger on Postgres share."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.escape import escape
from holdfast.engines.postgres.tasks.rows import to_task
from holdfast.engines.postgres.tasks.work import Doorbell, requests_topic
from holdfast.spi.tasks.clients import TaskFilter
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepKey


class LedgerView:
    """The base of all parts of the ledger: the tasks of one tenant.

    Messages, steps, feedback and new tasks have their own ids, so the database stores them once
    even if they are sent again after a lost answer: such statements are ``safe``.
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    def _queued(self, row: Any) -> TaskSnapshot:
        """Return the task of a row. If it is in the queue, notify the workers."""
        found = to_task(row)
        if found.task.state is TaskState.SUBMITTED:
            self._engine.singleton(Doorbell).ring()
        return found

    def _requested(self, row: Any) -> TaskSnapshot:
        """Return the task of a row. Notify all workers if it is queued, or its own worker."""
        found = self._queued(row)
        if found.task.state is TaskState.WORKING:
            self._engine.singleton(Doorbell).ring(requests_topic(found.task.worker))
        return found


def moment(when: datetime | timedelta | None) -> tuple[datetime | None, float | None]:
    """Return a time, or the seconds after the database's current time; the other is ``None``."""
    if isinstance(when, timedelta):
        return None, when.total_seconds()
    return when, None


def filter_columns(wanted: TaskFilter) -> tuple[Any, ...]:
    """Return the parameters of a statement for a filter of tasks."""
    return (
        *(wanted.owner, wanted.session_id),
        None if wanted.agent is None else str(wanted.agent),
        wanted.updated_after,
        None if wanted.states is None else [state.value for state in wanted.states],
        *(wanted.updated_before, wanted.id_prefix, wanted.worker),
        None if wanted.text is None else escape(wanted.text),
    )


def message_columns(
    message: StoredMessage | None,
) -> tuple[str | None, datetime | None, str | None, str | None]:
    """Return the columns of a message; all are ``None`` if there is no message."""
    if message is None:
        return None, None, None, None
    return message.id, message.created_at, message.payload, message.digest()


def step_columns(key: StepKey | None) -> tuple[str | None, str | None, int | None]:
    """Return the columns of a step's key; all are ``None`` if there is no key."""
    return (None, None, None) if key is None else (key.kind, key.name, key.occurrence)
