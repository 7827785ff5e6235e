"""Contexts: conversations that tasks share, and messages to copy into session logs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from holdfast.contracts.tasks.checks import check_owner
from holdfast.contracts.tasks.scope import MOST, LedgerCalls, context_key
from holdfast.spi.tasks.contexts import ContextAfter, SaidMessage
from holdfast.spi.tasks.records import ContextKey, Extent, load_messages
from holdfast.values.checks import (
    check_count,
    check_id,
    check_list,
    check_optional_count,
)
from holdfast.values.content import ChatMessage
from holdfast.values.cursors import decode_cursor, encode_cursor
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.owners import Owner
from holdfast.values.tasks.records import (
    ContextPage,
    ContextRecord,
)

CONTEXT_MESSAGES = 50
"""How many of a context's last messages are searched for uncopied ones."""


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """A message and the task that it belongs to.

    >>> TaskMessage("t1", AgentId.parse("writer"), "ana", "c1", 2, ChatMessage.user("hi")).owner
    'ana'
    """

    task_id: str
    agent: AgentId
    owner: str
    session_id: str
    version: int
    """The task's version when this was read."""

    message: ChatMessage


@runtime_checkable
class TranscriptLedger(Protocol):
    """Which messages of tasks are not copied into the session logs of their contexts yet.

    A task is marked as copied when all of its messages are. The mark is removed when the task
    continues, so that later messages are copied too. Workers call this for all owners of a tenant.

    Promises:

    - the messages of a task that rests are to be copied until it is marked
    - the messages of a task at work are not to be copied as resting
    - a task that goes on after it was marked is to be copied again
    - a mark for an older version of a task has no effect
    - messages to be copied are filtered by agent
    - the messages of a context to be copied come in the order they were said
    - the messages of a context leave out tasks that are marked
    - the messages of a context are those of one owner
    - messages of several contexts are those that each of them has
    - marking returns which tasks are still there
    - a marked task stays marked after a reopen
    """

    @abstractmethod
    async def resting_messages(
        self, *, agents: Collection[Agent], limit: int = 100
    ) -> list[TaskMessage]:
        """Return all messages of up to ``limit`` idle tasks that are not marked as copied.

        Idle tasks are neither queued nor running: they wait, are paused or have ended.

        ::

            for one in await ledger.resting_messages(agents=["writer"]):
                print(one.task_id, one.message.text)
        """
        ...

    @abstractmethod
    async def context_messages(
        self,
        session_id: str,
        *,
        agents: Collection[Agent],
        owner: str | None = None,
        limit: int = CONTEXT_MESSAGES,
    ) -> list[TaskMessage]:
        """Return the last messages of a context, except those of tasks marked as copied.

        ::

            said = await ledger.context_messages(task.session_id, agents=["writer"], owner="ana")
        """
        ...

    @abstractmethod
    async def messages_of_contexts(
        self,
        contexts: Sequence[tuple[str, str | None]],
        *,
        agents: Collection[Agent],
        limit: int = CONTEXT_MESSAGES,
    ) -> list[TaskMessage]:
        """Return what ``context_messages`` returns, of contexts given by session id and owner.

        The messages of a context are next to each other. ::

            said = await ledger.messages_of_contexts([("c1", "ana")], agents=["writer"])
        """
        ...

    @abstractmethod
    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks, given by id and version, as copied. Returns the ids that still exist.

        ::

            there = await ledger.mark_copied([(task.id, task.version)])
        """
        ...


@runtime_checkable
class ContextLedger(Protocol):
    """The contexts of tasks: created on first use, with the messages of all their tasks in order.

    A context belongs to the owner of its first task, and ids are separate per owner: another
    owner's ``c1`` is another context, so that no owner learns which ids others use. The default of
    ``owner`` is that of the state; without one, only contexts without an owner are found.

    Promises:

    - a context is made on first use
    - a task without a session id gets a context of its own
    - a context has the messages of all its tasks in the order they were stored
    - 20 concurrent tasks of one context lose no message
    - the last messages of a context are given on request
    - max_bytes gives the newest messages of a context that fit, and always the newest
    - an unknown context is none
    - a follow-up with only a task id finds its context
    - contexts are listed newest first and without messages
    - pages of contexts follow each other without a gap or a repeat
    - a limit of zero is an empty page of contexts
    - a cursor that no listing of contexts gave is refused
    - the same session id of another owner is another context
    - the operator lists the contexts of all owners
    - one tenant never sees another's contexts
    - clear_context removes the context with its tasks and all they hold
    - clear_context leaves other contexts as they were
    - clear_context of an unknown context is zero
    - after clear_context no late write of a worker takes effect
    - after clear_context a submit key is free again
    - after clear_context nothing more is delivered
    - after clear_context the session id begins anew
    - a context is still there after a reopen
    - a context that a store returns is the caller's to mutate
    """

    @abstractmethod
    async def list_contexts(
        self,
        *,
        owner: Owner = None,
        limit: int = 50,
        cursor: str | None = None,
        children: bool = True,
    ) -> ContextPage:
        """Return contexts without messages, the newest first, then by id, descending.

        With ``children=False`` the tasks that other tasks submitted are not counted, and contexts
        that have only such tasks are left out.

        ::

            page = await ledger.list_contexts(owner="ana")
        """
        ...

    @abstractmethod
    async def get_context(
        self,
        session_id: str,
        *,
        owner: str | None = None,
        messages_limit: int | None = None,
        max_bytes: int | None = None,
    ) -> ContextRecord | None:
        """Return a context, or ``None``, with its last ``messages_limit`` messages (default: all).

        ``max_bytes`` limits the size of the messages as JSON text: the newest that fit are
        returned, and always the newest one. If messages are left out, the record is ``truncated``.

        ::

            context = await ledger.get_context(task.session_id)
        """
        ...

    @abstractmethod
    async def clear_context(self, session_id: str, *, owner: str | None = None) -> int:
        """Delete a context with its tasks. Returns how many tasks there were.

        Live tasks are deleted too: their workers lose the leases, and ``follow`` ends.

        ::

            removed = await ledger.clear_context("c1", owner="ana")
        """
        ...


class ContextCalls(LedgerCalls, ContextLedger, TranscriptLedger):
    """Implements ``ContextLedger`` and ``TranscriptLedger`` with the storage of an engine."""

    async def list_contexts(
        self,
        *,
        owner: Owner = None,
        limit: int = 50,
        cursor: str | None = None,
        children: bool = True,
    ) -> ContextPage:
        """Return contexts without messages, the newest first, then by id, descending."""
        whose, most = check_owner(owner), check_count("limit", limit)
        after = None
        if cursor is not None:
            when, (session_id, of) = decode_cursor(cursor, names=2)
            after = ContextAfter(when, session_id, of)
        if most == 0:
            return ContextPage([])
        # One more than requested, to detect whether there is a next page.
        found = await self._storage.list_contexts(
            whose, after, min(most + 1, MOST), children=bool(children)
        )
        page, last = found[:most], None
        if len(found) > most:
            last = encode_cursor(page[-1].created_at, page[-1].id, page[-1].owner)
        return ContextPage(page, next_cursor=last)

    @renamed(history_length="messages_limit", context_id="session_id")
    async def get_context(
        self,
        session_id: str,
        *,
        owner: str | None = None,
        messages_limit: int | None = None,
        max_bytes: int | None = None,
    ) -> ContextRecord | None:
        """Return a context with its last ``messages_limit`` messages, or ``None``."""
        extent = Extent(
            check_optional_count("messages_limit", messages_limit),
            max_bytes=check_optional_count("max_bytes", max_bytes),
        )
        found = await self._storage.get_context(context_key(session_id, owner), extent)
        if found is None:
            return None
        messages = load_messages(found.messages)
        return replace(found.context, messages=messages, truncated=found.truncated)

    @renamed(context_id="session_id")
    async def clear_context(self, session_id: str, *, owner: str | None = None) -> int:
        """Delete a context with its tasks. Returns how many tasks there were."""
        return await self._storage.clear_context(context_key(session_id, owner))

    async def resting_messages(
        self, *, agents: Collection[Agent], limit: int = 100
    ) -> list[TaskMessage]:
        """Return all messages of up to ``limit`` idle tasks that are not marked as copied."""
        names = {AgentId.parse(one) for one in agents}
        found = await self._storage.resting_messages(names, check_count("limit", limit))
        return [_load(said) for said in found]

    @renamed(last="limit", context_id="session_id")
    async def context_messages(
        self,
        session_id: str,
        *,
        agents: Collection[Agent],
        owner: str | None = None,
        limit: int = CONTEXT_MESSAGES,
    ) -> list[TaskMessage]:
        """Return the last messages of a context, except those of tasks marked as copied."""
        return await self.messages_of_contexts([(session_id, owner)], agents=agents, limit=limit)

    async def messages_of_contexts(
        self,
        contexts: Sequence[tuple[str, str | None]],
        *,
        agents: Collection[Agent],
        limit: int = CONTEXT_MESSAGES,
    ) -> list[TaskMessage]:
        """Return what ``context_messages`` returns, of contexts given by session id and owner."""
        names = {AgentId.parse(one) for one in agents}
        given = check_list("contexts", contexts)
        keys = list(dict.fromkeys(_check_context(at, one) for at, one in enumerate(given)))
        most = check_count("limit", limit)
        found = await self._storage.context_messages(keys, names, most) if keys else []
        return [_load(said) for said in found]

    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks, given by id and version, as copied. Returns the ids that still exist."""
        return await self._storage.mark_copied(
            [_check_version(at, one) for at, one in enumerate(check_list("tasks", tasks))]
        )


def _load(said: SaidMessage) -> TaskMessage:
    return TaskMessage(*said[:-1], said.message.load())


def _check_context(at: int, given: object) -> ContextKey:
    """Check the session id and the owner of a context."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidInputError(f"contexts[{at}]", "must be a session id and an owner or None")
    return context_key(*given)


def _check_version(at: int, given: object) -> tuple[str, int]:
    """Check the id and the version of a task."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidInputError(f"tasks[{at}]", "must be the id and the version of a task")
    return check_id(f"tasks[{at}]", given[0]), check_count(f"tasks[{at}]", given[1])
