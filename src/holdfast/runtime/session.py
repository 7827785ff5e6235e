"""The stores of a task's context, bound to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.storage.history import HistoryProvider, HistoryRetention
from holdfast.kernel.storage.ledger_records import TaskRecord
from holdfast.kernel.storage.memory import ShortTermMemory
from holdfast.runtime.cleanup import Cleanup


class TaskSession:
    """The working state of a context, shared by its tasks.

    ::

        await task.state.update({"current_task": "summary"})
    """

    def __init__(self, short_term: ShortTermMemory, session_id: str) -> None:
        self._short_term = short_term
        self._session_id = session_id

    async def get(self, *, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """The state, or only some keys of it.

        ::

            await task.state.get(keys=["current_task"])
        """
        return await self._short_term.get_state(self._session_id, keys=keys)

    async def update(self, patch: dict[str, Any], *, delete_keys: Sequence[str] = ()) -> None:
        """Merge keys into it.

        ::

            await task.state.update({"page": 2})
        """
        await self._short_term.update_state(self._session_id, patch, delete_keys=delete_keys)

    async def set(self, state: dict[str, Any]) -> None:
        """Replace it.

        ::

            await task.state.set({})
        """
        await self._short_term.set_state(self._session_id, state)

    async def clear(self) -> None:
        """Remove it.

        ::

            await task.state.clear()
        """
        await self._short_term.clear(self._session_id)


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
