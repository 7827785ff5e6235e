"""What was said in tasks, for the process that copies it into the session logs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from holdfast.values.content import ChatMessage
from holdfast.values.identity import Agent, AgentId

CONTEXT_MESSAGES = 50
"""Among how many of a context's last messages those are looked for that are not copied yet."""


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """A message with the task that it was said in.

    >>> TaskMessage("t1", AgentId.parse("writer"), "ana", "c1", 2, ChatMessage.user("hi")).owner
    'ana'
    """

    task_id: str
    agent: AgentId
    owner: str
    context_id: str
    version: int
    """The task's version when this was read."""

    message: ChatMessage


@runtime_checkable
class TranscriptLedger(Protocol):
    """Which messages of tasks are not copied into the session logs of their contexts yet.

    A task is marked when all of its messages are copied. A task that goes on is unmarked, so that
    what is said later is copied too. Workers call this for all owners of a tenant.

    Promises:

    - the messages of a task that rests are to be copied until it is marked
    - the messages of a task at work are not to be copied as resting
    - a task that goes on after it was marked is to be copied again
    - a mark for an older version of a task has no effect
    - messages to be copied are filtered by agent
    - the messages of a context to be copied come in the order they were said
    - the messages of a context leave out tasks that are marked
    - the messages of a context are those of one owner
    - marking returns which tasks are still there
    - a marked task stays marked after a reopen
    """

    @abstractmethod
    async def resting_messages(
        self, *, agents: Collection[Agent], limit: int = 100
    ) -> list[TaskMessage]:
        """All messages of up to ``limit`` tasks that are not marked and that nobody works on.

        Tasks that wait in the queue are left out: a worker will begin them soon.

        ::

            for one in await ledger.resting_messages(agents=["writer"]):
                print(one.task_id, one.message.text)
        """
        ...

    @abstractmethod
    async def context_messages(
        self,
        context_id: str,
        *,
        agents: Collection[Agent],
        owner: str = "",
        last: int = CONTEXT_MESSAGES,
    ) -> list[TaskMessage]:
        """Those of a context's last messages whose tasks are not marked.

        ::

            said = await ledger.context_messages(task.context_id, agents=["writer"], owner="ana")
        """
        ...

    @abstractmethod
    async def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]:
        """Mark tasks, given by id and version; returns the ids of those that still exist.

        ::

            there = await ledger.mark_copied([(task.id, task.version)])
        """
        ...
