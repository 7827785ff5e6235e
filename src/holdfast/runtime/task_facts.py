"""The read-only properties of a handler's task."""

from __future__ import annotations

from typing import Any

from holdfast.runtime.running_task import RunningTask, Stop
from holdfast.runtime.stores import TaskStores
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed, warn_deprecated
from holdfast.values.identity import AgentId
from holdfast.values.tasks.records import TaskRecord


class TaskFacts:
    """The properties of a task; ``TaskContext`` adds the methods that change it.

    ::

        question = task.message.text
    """

    def __init__(self, stores: TaskStores, record: TaskRecord, held: RunningTask) -> None:
        self._stores = stores
        self._record = record
        self._held = held

    @property
    def id(self) -> str:
        """The task's id.

        ::

            task.log.info("working on %s", task.id)
        """
        return self._record.id

    @property
    def session_id(self) -> str:
        """The conversation that the task is part of.

        ::

            await task.say(f"this is conversation {task.session_id}")
        """
        return self._record.session_id

    @property
    def context_id(self) -> str:
        """Deprecated: use ``session_id``."""
        warn_deprecated("TaskContext.context_id", "TaskContext.session_id")
        return self.session_id

    @property
    def agent(self) -> AgentId:
        """The agent whose handler this is.

        ::

            await task.say(f"{task.agent} is at work")
        """
        return self._record.agent

    @property
    def owner(self) -> str:
        """The person or program that the task belongs to; empty for none.

        ::

            name = task.owner or "nobody in particular"
            await task.say(f"for {name}")
        """
        return self._record.owner

    @property
    def tenant(self) -> str:
        """The tenant of the task.

        ::

            task.log.info("of the tenant %s", task.tenant)
        """
        return self._stores.tenant

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata that the task was submitted with.

        ::

            language = task.metadata.get("language", "en")
        """
        return self._record.metadata

    @property
    def attempt(self) -> int:
        """How often the task was claimed since the last progress, including this claim.

        ::

            if task.attempt > 1:
                task.log.warning("this is attempt %d", task.attempt)
        """
        return self._record.attempts

    @property
    def fence(self) -> int:
        """The number of this claim of the task; writes of earlier claims have no effect.

        ::

            task.log.info("claim %d", task.fence)
        """
        return self._held.lease.fence

    @property
    def message(self) -> ChatMessage:
        """The message that the task was submitted with.

        ::

            question = task.message.text
        """
        return self._record.messages[0]

    @property
    def messages(self) -> list[ChatMessage]:
        """All messages of the task when this run began.

        ::

            for message in task.messages:
                task.log.info("%s: %s", message.role, message.text)
        """
        return list(self._record.messages)

    @renamed(last="limit")
    async def conversation(self, *, limit: int | None = None) -> list[ChatMessage]:
        """The messages of all tasks of the context that have the same owner, in order.

        With ``limit``, only the newest ``limit`` messages are returned. ::

            for message in await task.conversation(limit=20):
                task.log.info("%s: %s", message.role, message.text)
        """
        context = await self._stores.tasks.get_context(
            self.session_id, owner=self.owner, messages_limit=limit
        )
        return [] if context is None else context.messages

    @property
    def cancelled(self) -> bool:
        """Whether the handler should return soon: a client asked to cancel, or the lease is lost.

        ::

            for page in pages:
                if task.cancelled:
                    break
                await task.artifact("notes.md", page, append=True)
        """
        return self._held.stopped in {Stop.CANCEL, Stop.LOST}
