"""Copies the messages of tasks into the session log of their context, where recall finds them.

A message is in the ledger first. A worker copies messages when a handler begins, when it calls
``say``, and when a task rests, which means that it has ended or waits. The ledger flags tasks whose
messages are all copied. If a process dies before that, another worker copies them. An event has the
id of its message, so a message that is copied twice is one event.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from holdfast.contracts.history import HistoryProvider, HistoryRetention
from holdfast.contracts.tasks.contexts import TaskMessage
from holdfast.runtime.app import App
from holdfast.runtime.stores import TaskStores
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, HoldfastError, InvalidInputError
from holdfast.values.identity import AgentId
from holdfast.values.owners import MemoryScope
from holdfast.values.tasks.records import TaskRecord

_log = logging.getLogger("holdfast.worker")
TASKS_AT_ONCE = 100


class Remembering:
    """Copies the messages of the tasks of an app's agents.

    ::

        remembering = Remembering(app)
        await remembering.rested(state)
    """

    def __init__(self, app: App) -> None:
        self._agents: Mapping[AgentId, MemoryScope] = {
            one.agent: one.memory
            for one in app.handlers
            # Messages that are not kept in a transcript are not copied either.
            if app.remember and one.retention is HistoryRetention.PERMANENT
        }

    async def begins(self, stores: TaskStores, task: TaskRecord) -> None:
        """Copy the messages of the context so far, before a handler runs.

        If that fails, it is logged and the handler runs; the messages are copied when the task
        rests.
        """
        if task.agent not in self._agents:
            return
        try:
            said = await stores.tasks.context_messages(
                task.session_id, agents=self._agents, owner=task.owner
            )
            await self._copy(stores, said)
        except HoldfastError as error:
            _log.warning("task %s: its messages are copied later: %s", task.id, error)

    async def says(self, stores: TaskStores, task: TaskRecord, message: ChatMessage) -> None:
        """Copy a message that a handler has just added with ``say``."""
        if task.agent in self._agents:
            said = TaskMessage(
                task.id, task.agent, task.owner, task.session_id, task.version, message
            )
            await self._copy(stores, [said])

    async def rested(self, stores: TaskStores) -> int:
        """Copy the messages of all resting tasks. Returns how many tasks."""
        count = 0
        while self._agents:
            said = await stores.tasks.resting_messages(agents=self._agents, limit=TASKS_AT_ONCE)
            if not said:
                break
            await self._copy(stores, said)
            tasks = {one.task_id: one for one in said}
            there = await stores.tasks.mark_copied(
                [(id_, one.version) for id_, one in tasks.items()]
            )
            for one in tasks.values():
                if one.task_id not in there:
                    # Its context was cleared meanwhile: delete the copies too.
                    await self._history(stores, one).clear_run(
                        one.agent, session_id=one.session_id, run_id=one.task_id
                    )
            count += len(tasks)
        return count

    async def _copy(self, stores: TaskStores, said: Iterable[TaskMessage]) -> None:
        for _, group in groupby(said, key=lambda one: one.task_id):
            messages = list(group)
            await _append(self._history(stores, messages[0]), messages)

    def _history(self, stores: TaskStores, one: TaskMessage) -> HistoryProvider:
        if not one.owner:
            return stores.history
        return stores.for_owner(one.owner, memory=self._agents[one.agent]).history


async def _append(history: HistoryProvider, said: Sequence[TaskMessage]) -> None:
    """Append messages of one task to its context's transcript, each once."""
    task = said[0]
    where: dict[str, str] = {"session_id": task.session_id, "run_id": task.task_id}
    try:
        await history.append_many(task.agent, [one.message for one in said], **where)
    except (ConflictError, InvalidInputError):
        # Clients choose the ids of messages, and may use the same id twice in a context.
        await _append_each(history, said, where)


async def _append_each(
    history: HistoryProvider, said: Sequence[TaskMessage], where: dict[str, str]
) -> None:
    for one in said:
        try:
            await history.append(one.agent, one.message, **where)
        except ConflictError:
            await history.append(one.agent, _renamed(one), **where)
        except InvalidInputError as error:
            _log.error(
                "message %s of task %s cannot be copied: %s", one.message.id, one.task_id, error
            )


def _renamed(one: TaskMessage) -> ChatMessage:
    """Return the message under an id that is unique within the context and the same on a retry."""
    digest = hashlib.sha256(one.message.id.encode()).hexdigest()[:32]
    return dataclasses.replace(one.message, id=f"{one.task_id}:{digest}")
