"""How clients wait for the end of a task, and get what its handler returned."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.tasks.client_ledger import ClientLedger
from holdfast.contracts.tasks.scope import MOST, LedgerCalls, task_key
from holdfast.spi.tasks.records import Extent, TaskKey
from holdfast.values.checks import check_seconds
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.errors import NotFoundError
from holdfast.values.identity import Agent
from holdfast.values.lifecycle import TERMINAL
from holdfast.values.owners import Owner
from holdfast.values.tasks.records import MAX_ATTEMPTS, TaskRecord


@runtime_checkable
class ResultLedger(Protocol):
    """Waiting for tasks, without polling: the engine notifies the callers that wait.

    A notification is a hint. Where none arrives, as behind a transaction pooler, the engine polls.

    Promises:

    - wait gives the task once it has ended
    - wait of an ended task is at once
    - wait ends by its timeout and the task goes on
    - wait of an unknown task or another owner's is not found
    - wait of a task that is deleted meanwhile is not found
    - every waiter of a task gets its end
    - submit_and_wait gives the ended task with its result
    - submit_and_wait again with the same key waits for the same task
    """

    @abstractmethod
    async def wait(
        self, task_id: str, *, timeout_seconds: float | None = None, owner: Owner = None
    ) -> TaskRecord:
        """Return a task, without messages and artifacts, when it has ended.

        Raises ``TimeoutError`` if it has not ended after ``timeout_seconds``; the task continues.
        Without ``timeout_seconds`` it waits as long as the task takes. ::

            done = await ledger.wait(task.id, timeout_seconds=60)
            print(done.state, done.result)
        """
        ...

    @abstractmethod
    async def submit_and_wait(
        self,
        agent: Agent,
        message: ChatMessage,
        *,
        timeout_seconds: float | None = None,
        session_id: str | None = None,
        owner: str | None = None,
        metadata: dict[str, Any] | None = None,
        submit_key: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
    ) -> TaskRecord:
        """Queue a task as ``submit`` does, and return it when it has ended, as ``wait`` does.

        With a ``submit_key``, a retry after a ``TimeoutError`` waits for the same task. ::

            done = await ledger.submit_and_wait("writer", message, timeout_seconds=60)
        """
        ...


class ResultCalls(LedgerCalls, ClientLedger, ResultLedger):
    """Implements ``ResultLedger``: checks the arguments, then calls the engine's storage."""

    async def wait(
        self, task_id: str, *, timeout_seconds: float | None = None, owner: Owner = None
    ) -> TaskRecord:
        """Return a task when it has ended."""
        key, seconds = task_key(task_id, owner), timeout_seconds
        if seconds is not None:
            seconds = check_seconds("timeout_seconds", seconds)
        with self._storage.following(key.task_id) as followed:
            # However short the wait is: a task that is not there, or has ended, is not waited for.
            ended = await self._has_ended(key)
            try:
                async with asyncio.timeout(seconds):
                    while not ended:
                        await followed.wait(found=False)
                        ended = await self._has_ended(key)
            except TimeoutError:
                raise TimeoutError(
                    f"task {task_id!r} has not ended after {seconds:g} seconds: it continues, "
                    "wait for it again"
                ) from None
        task = await self._storage.get(key, Extent())
        if task is None:
            raise NotFoundError("task", key.task_id)
        return task.load()

    async def _has_ended(self, key: TaskKey) -> bool:
        # Reads no events, only the state. The call also records that somebody waits for the task.
        found = await self._storage.next_events(key, MOST)
        if found is None:
            raise NotFoundError("task", key.task_id)
        return found.state in TERMINAL

    @renamed(context_id="session_id")
    async def submit_and_wait(
        self,
        agent: Agent,
        message: ChatMessage,
        *,
        timeout_seconds: float | None = None,
        session_id: str | None = None,
        owner: str | None = None,
        metadata: dict[str, Any] | None = None,
        submit_key: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        run_after: datetime | timedelta | None = None,
    ) -> TaskRecord:
        """Queue a task, and return it when it has ended."""
        if timeout_seconds is not None:
            check_seconds("timeout_seconds", timeout_seconds)
        task = await self.submit(
            agent,
            message,
            session_id=session_id,
            owner=owner,
            metadata=metadata,
            submit_key=submit_key,
            max_attempts=max_attempts,
            run_after=run_after,
        )
        return await self.wait(task.id, timeout_seconds=timeout_seconds, owner=owner)
