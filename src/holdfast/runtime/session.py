"""The transcript of a task's context, bound to it."""

from __future__ import annotations

from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.storage.history import HistoryProvider, HistoryRetention
from holdfast.kernel.storage.ledger_records import TaskRecord
from holdfast.runtime.cleanup import Cleanup


class TaskHistory:
    """The agent's transcript in a context; what this task adds carries its id as the run.

    With ``HistoryRetention.RUN`` it is cleared when the task has ended, also after a crash; with
    ``NONE`` nothing is written. ::

        await task.history.append(ChatMessage.assistant("thinking"))
    """

    def __init__(
        self,
        history: HistoryProvider,
        record: TaskRecord,
        retention: HistoryRetention,
        cleanup: Cleanup,
    ) -> None:
        self._history = history
        self._record = record
        self._retention = retention
        self._cleanup = cleanup

    async def append(self, *messages: ChatMessage) -> None:
        """Add messages.

        ::

            await task.history.append(ChatMessage.user("hello"))
        """
        if self._retention is HistoryRetention.NONE:
            return
        if self._retention is HistoryRetention.RUN:
            await self._cleanup.of_run()
        await self._history.append_many(
            self._record.agent,
            list(messages),
            session_id=self._record.context_id,
            run_id=self._record.id,
        )

    async def messages(self, *, last: int | None = None) -> list[ChatMessage]:
        """The transcript, or the last messages of it.

        ::

            window = await task.history.messages(last=20)
        """
        return await self._history.get_messages(
            self._record.agent, session_id=self._record.context_id, last=last
        )
