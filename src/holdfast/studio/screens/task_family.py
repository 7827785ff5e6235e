"""Which task a task was made from, and which tasks were made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.studio.access import Session
from holdfast.studio.screens.owner_view import seen_tasks
from holdfast.values.content import ChatMessage
from holdfast.values.tasks.events import StepRecord, TaskEvent
from holdfast.values.tasks.records import TaskRecord

READ = 50
"""How many of the newest tasks of the session are looked at."""


@dataclass(frozen=True, slots=True)
class Family:
    """The task that a task was made from, and those that were made from it."""

    origin: str = ""
    """Its id; empty if a client submitted the task by itself."""

    how: str = ""
    """How it was made from the other one."""

    copies: tuple[str, ...] = ()
    """Tasks that run it again or go on from it. Forks are in sessions of their own: not found."""


async def read_family(
    ledger: TaskLedger, session: Session, task: TaskRecord, first: Sequence[TaskEvent]
) -> Family:
    """Read the task that a task was made from, and those made from it; ``first``: its first events.

    ::

        family = await read_family(ledger, session, task, await ledger.events(task.id, limit=3))
    """
    how = await _how(ledger, session, task, first) if task.retry_of else ""
    copies: list[str] = []
    if task.terminal:
        page = await ledger.list(session_id=task.session_id, limit=READ)
        made = [one for one in page.tasks if one.retry_of == task.id]
        copies = [one.id for one in seen_tasks(session, made)]
    return Family(task.retry_of, how, tuple(copies))


async def _how(
    ledger: TaskLedger, session: Session, task: TaskRecord, first: Sequence[TaskEvent]
) -> str:
    origin = await ledger.get(task.retry_of, messages_limit=0, artifacts=False)
    if origin is None or not seen_tasks(session, [origin]):
        return "made from"
    begun, own = first_message(await ledger.events(origin.id, limit=3)), first_message(first)
    same = begun is not None and own is not None and begun.id == own.id
    took_over = same or any(isinstance(one.body, StepRecord) and not one.fence for one in first)
    if origin.session_id == task.session_id:
        return "goes on from" if took_over else "run again from"
    # A client, too, may submit a task in another session and name the one that it retries.
    return "fork of" if took_over else "made from"


def first_message(events: Sequence[TaskEvent]) -> ChatMessage | None:
    """Return the message that a task began with, from its first events.

    ::

        first_message(await ledger.events(task.id, limit=3))
    """
    return next((one.body for one in events if isinstance(one.body, ChatMessage)), None)
