"""What a session sees of a task: operators see all, owners what the service shows clients.

Notes may have a traceback, and steps may have requests of a handler to other systems.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from holdfast.studio.access import Session
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepRecord, TaskEvent, Transition
from holdfast.values.tasks.records import TaskRecord


def seen_task(session: Session, task: TaskRecord) -> TaskRecord:
    """Return a task without what only operators see: notes, worker, result.

    ::

        seen_task(desk.session(request), task)
    """
    if session.operator:
        return task
    note = task.note if task.state is TaskState.REJECTED else ""
    return replace(task, note=note, worker="", result=None)


def seen_tasks(session: Session, tasks: Iterable[TaskRecord]) -> list[TaskRecord]:
    """Return tasks as a session sees them; an owner does not see child tasks.

    ::

        seen_tasks(desk.session(request), page.tasks)
    """
    return [seen_task(session, task) for task in tasks if session.operator or not task.parent_id]


def seen_events(session: Session, events: Iterable[TaskEvent]) -> list[TaskEvent]:
    """Return the events that a session sees: owners see no steps, notes, workers or names.

    ::

        seen_events(desk.session(request), await ledger.events(task.id))
    """
    if session.operator:
        return list(events)
    found = []
    for event in events:
        if isinstance(event.body, StepRecord):
            continue
        if isinstance(event.body, Transition):
            note = event.body.note if event.body.to_state is TaskState.REJECTED else ""
            event = replace(event, body=replace(event.body, note=note, worker=""))  # noqa: PLW2901
        found.append(replace(event, by_name=""))
    return found
