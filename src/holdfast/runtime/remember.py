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
from typing import TypeAlias

from holdfast.contracts.history import History, HistoryRetention
from holdfast.contracts.owner_scope import OwnerScope
from holdfast.contracts.tasks.contexts import TaskMessage
from holdfast.runtime.app import App
from holdfast.runtime.batches import Batches
from holdfast.runtime.stores import TaskStores
from holdfast.spi.log_entry import LogEntry
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, HoldfastError, InvalidInputError
from holdfast.values.identity import AgentId
from holdfast.values.owners import MemoryScope
from holdfast.values.tasks.records import TaskRecord

_log = logging.getLogger("holdfast.worker")
TASKS_AT_ONCE = 100
MOST_CHARACTERS = 4 << 20
"""How long the messages may be that are appended at once; those of one task are not divided."""

Context: TypeAlias = tuple[str, str | None]
"""The session id and the owner of a context."""


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
        self._beginning: dict[str, Batches[Context, None]] = {}

    async def begins(self, stores: TaskStores, task: TaskRecord) -> None:
        """Copy the messages of the context so far, before a handler runs.

        Those of tasks that begin at the same time are copied together. If that fails, it is logged
        and the handler runs; the messages are copied when the task rests.
        """
        if task.agent not in self._agents:
            return
        try:
            await self._contexts_of(stores).add((task.session_id, task.owner or None))
        except HoldfastError as error:
            _log.warning("task %s: its messages are copied later: %s", task.id, error)

    def _contexts_of(self, stores: TaskStores) -> Batches[Context, None]:
        """Return the queue of a tenant's contexts whose messages are to be copied."""
        if stores.tenant not in self._beginning:

            async def copy(contexts: list[Context]) -> list[None]:
                said = await stores.tasks.messages_of_contexts(contexts, agents=self._agents)
                await self._copy(stores, said)
                return [None] * len(contexts)

            self._beginning[stores.tenant] = Batches(copy, most=TASKS_AT_ONCE)
        return self._beginning[stores.tenant]

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
                    await self._history(stores.history, one).clear_run(
                        one.agent, session_id=one.session_id, run_id=one.task_id
                    )
            count += len(tasks)
        return count

    async def _copy(self, stores: TaskStores, said: Iterable[TaskMessage]) -> None:
        """Append messages to the transcripts of their contexts, those of many tasks at once."""
        batch: list[list[TaskMessage]] = []
        entries: list[LogEntry] = []
        size = 0
        for _, group in groupby(said, key=lambda one: one.task_id):
            messages = list(group)
            history = self._history(stores.history, messages[0])
            try:
                found = history.checked(
                    messages[0].agent, [one.message for one in messages], **_where(messages[0])
                )
            except (ConflictError, InvalidInputError):
                await _append_each(history, messages)
                continue
            batch.append(messages)
            entries += found
            size += sum(len(one.body) for one in found)
            if size > MOST_CHARACTERS:
                await self._append(stores.history, batch, entries)
                batch, entries, size = [], [], 0
        await self._append(stores.history, batch, entries)

    async def _append(
        self, history: History, batch: Sequence[list[TaskMessage]], entries: Sequence[LogEntry]
    ) -> None:
        """Append the entries of a batch, each once."""
        try:
            await history.append_checked(entries)
        except (ConflictError, InvalidInputError):
            # Clients choose the ids of messages, and may use the same id twice in a context.
            for messages in batch:
                await _append_all(self._history(history, messages[0]), messages)

    def _history(self, history: History, one: TaskMessage) -> History:
        if not one.owner:
            return history
        return history.for_owner(OwnerScope(one.owner, self._agents[one.agent]))


def _where(one: TaskMessage) -> dict[str, str]:
    return {"session_id": one.session_id, "run_id": one.task_id}


async def _append_all(history: History, said: Sequence[TaskMessage]) -> None:
    """Append the messages of a task together, or one by one if the id of one is in use."""
    try:
        await history.append_many(said[0].agent, [one.message for one in said], **_where(said[0]))
    except (ConflictError, InvalidInputError):
        await _append_each(history, said)


async def _append_each(history: History, said: Sequence[TaskMessage]) -> None:
    """Append the messages of a task one by one, those with an id that is in use under another."""
    for one in said:
        try:
            try:
                await history.append(one.agent, one.message, **_where(one))
            except ConflictError:
                await history.append(one.agent, _renamed(one), **_where(one))
        except (ConflictError, InvalidInputError) as error:
            # A client knows the id of its task, and so the other id: it may be in use as well.
            _log.error(
                "message %s of task %s cannot be copied: %s", one.message.id, one.task_id, error
            )


def _renamed(one: TaskMessage) -> ChatMessage:
    """Return the message under an id that is unique within the context and the same on a retry."""
    digest = hashlib.sha256(one.message.id.encode()).hexdigest()[:32]
    return dataclasses.replace(one.message, id=f"{one.task_id}:{digest}")
