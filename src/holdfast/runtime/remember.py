"""What is said in tasks goes into the session log of its context, where recall finds it.

The ledger has every message first. Copies are made when a handler begins, when it says something,
and when a task rests; the ledger marks tasks whose messages are all copied. A process that dies in
between leaves its tasks unmarked, and another worker copies them. An event has the id of its
message, so that a copy that is made twice is one event.
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
    """Copies messages of the tasks of an app's agents.

    ::

        remembering = Remembering(app)
        await remembering.rested(state)
    """

    def __init__(self, app: App) -> None:
        self._agents: Mapping[AgentId, MemoryScope] = {
            one.agent: one.memory
            for one in app.handlers
            # What is not kept in a transcript is not remembered either.
            if app.remember and one.retention is HistoryRetention.PERMANENT
        }

    async def begins(self, stores: TaskStores, task: TaskRecord) -> None:
        """Copy what was said in the context until now, before a handler runs.

        If that fails, the handler runs all the same: the messages are copied when the task rests.
        """
        if task.agent not in self._agents:
            return
        try:
            said = await stores.tasks.context_messages(
                task.context_id, agents=self._agents, owner=task.owner
            )
            await self._copy(stores, said)
        except HoldfastError as error:
            _log.warning("task %s: its messages are copied later: %s", task.id, error)

    async def says(self, stores: TaskStores, task: TaskRecord, message: ChatMessage) -> None:
        """Copy a message that a handler has just said."""
        if task.agent in self._agents:
            said = TaskMessage(
                task.id, task.agent, task.owner, task.context_id, task.version, message
            )
            await self._copy(stores, [said])

    async def rested(self, stores: TaskStores) -> int:
        """Copy the messages of tasks that rest, until all are copied; returns how many tasks."""
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
                    # Its context was cleared meanwhile: the copies must go too.
                    await self._history(stores, one).clear_run(
                        one.agent, session_id=one.context_id, run_id=one.task_id
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
    """Add messages of one task to its context's transcript, each once."""
    task = said[0]
    where: dict[str, str] = {"session_id": task.context_id, "run_id": task.task_id}
    try:
        await history.append_many(task.agent, [one.message for one in said], **where)
    except (ConflictError, InvalidInputError):
        # Clients choose the ids of messages, and may use one of them twice in a context.
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
    """The message under an id that is its own within the context, the same on every try."""
    digest = hashlib.sha256(one.message.id.encode()).hexdigest()[:32]
    return dataclasses.replace(one.message, id=f"{one.task_id}:{digest}")
