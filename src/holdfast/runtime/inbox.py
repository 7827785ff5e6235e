"""Messages that a handler receives while it runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.contracts.tasks.inbox import TOPIC
from holdfast.runtime.children import TaskChildren
from holdfast.values.checks import check_id, check_seconds
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepKey

RECEIVE = "receive"
DEADLINE = "deadline"
"""The kind of the step that stores the time at which a ``receive`` times out."""


class TaskInbox(TaskChildren):
    """The method of ``TaskContext`` that receives messages.

    ::

        approval = await task.receive("approval", timeout_seconds=3600)
    """

    async def receive(
        self, topic: str = TOPIC, *, timeout_seconds: float | None = None, name: str | None = None
    ) -> Any:
        """Return the next message that was sent to this task with ``state.tasks.send``.

        Each message is received once; in a later run of the handler the same call returns the same
        message. If there is no message, the call ends this run: no worker holds the task while it
        waits. After ``timeout_seconds``, counted from the first run, it returns ``None``. ``name``
        is the name of the step; the default is the topic. ::

            approval = await task.receive("approval", timeout_seconds=3600)
        """
        check_id("topic", topic)
        if timeout_seconds is not None:
            check_seconds("timeout_seconds", timeout_seconds)
        key = await self._next(RECEIVE, topic if name is None else name, branches=False)
        if stored := self._journal.find(key):
            return stored.result["message"]
        deadline = self._journal.find(StepKey(key.name, key.occurrence, DEADLINE))
        expired = False
        if deadline is not None:
            # As in a sleep: the ledger's clock decided that it is time.
            slack = timedelta(seconds=1 if deadline.fence < self.fence else 0)
            expired = datetime.fromisoformat(deadline.result) <= datetime.now(UTC) + slack
        received = await self._stores.tasks.receive(
            self._held.lease, key, topic=topic, last=expired
        )
        if received is not None:
            self._journal.keep(received)
            return received.result["message"]
        until = None
        if timeout_seconds is not None:
            later = datetime.now(UTC) + timedelta(seconds=timeout_seconds)
            kept = await self._keep(StepKey(key.name, key.occurrence, DEADLINE), later.isoformat())
            until = datetime.fromisoformat(kept.result)
        return await self._suspend(
            TaskState.SUBMITTED,
            progress=True,
            topic=topic,
            run_after=until,
            note=f"waits for a message of the topic {topic}",
        )
