"""The transcript of a task's context, bound to the task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from holdfast.contracts.history import HistoryProvider, HistoryRetention
from holdfast.runtime.cleanup import Cleanup
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.tasks.records import TaskRecord

KeepIds: TypeAlias = Callable[[list[str], list[str]], Awaitable[list[str]]]
"""Stores the message ids of an append as a step; returns the ids that the first run used.

Called with the digests of the contents and the ids.
"""


class TaskHistory:
    """The agent's transcript in a context; messages of this task have its id as their ``run_id``.

    With ``HistoryRetention.RUN`` they are cleared when the task has ended, also after a crash; with
    ``NONE`` nothing is written. ::

        await task.history.append(ChatMessage.assistant("thinking"))
    """

    def __init__(
        self,
        history: HistoryProvider,
        record: TaskRecord,
        retention: HistoryRetention,
        cleanup: Cleanup,
        keep_ids: KeepIds,
    ) -> None:
        self._history = history
        self._record = record
        self._retention = retention
        self._cleanup = cleanup
        self._keep_ids = keep_ids

    async def append(self, *messages: ChatMessage) -> None:
        """Append messages once: a later run with the same contents appends nothing.

        The ids of the messages do not matter for that.

        ::

            await task.history.append(ChatMessage.user("hello"))
        """
        if self._retention is HistoryRetention.NONE or not messages:
            return
        contents = [
            StoredMessage.of(one, field=f"messages[{at}]").digest()
            for at, one in enumerate(messages)
        ]
        if self._retention is HistoryRetention.RUN:
            await self._cleanup.of_run()
        # Stored before the append, so that a run after a crash appends under the same ids.
        ids = await self._keep_ids(contents, [one.id for one in messages])
        await self._history.append_many(
            self._record.agent,
            [replace(one, id=id_) for one, id_ in zip(messages, ids, strict=True)],
            session_id=self._record.session_id,
            run_id=self._record.id,
        )

    @renamed(last="limit")
    async def messages(self, *, limit: int | None = None) -> list[ChatMessage]:
        """Return the transcript, or its last ``limit`` messages.

        ::

            window = await task.history.messages(limit=20)
        """
        return await self._history.get_messages(
            self._record.agent, session_id=self._record.session_id, recent_limit=limit
        )
