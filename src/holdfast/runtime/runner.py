"""One claimed task: its handler is run, and the ledger is told how that ended."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from holdfast.kernel.core.content import ChatMessage
from holdfast.kernel.core.errors import (
    EngineError,
    HoldfastError,
    IllegalTransitionError,
    LeaseLostError,
)
from holdfast.kernel.core.lifecycle import TERMINAL, TaskState
from holdfast.kernel.storage.ledger_records import ClaimedTask, TaskRecord
from holdfast.runtime.app import Handler
from holdfast.runtime.context import TaskContext, said
from holdfast.runtime.held import Held, Stop
from holdfast.runtime.journal import Journal
from holdfast.runtime.outcome import (
    Suspended,
    TaskFailedError,
    TaskRejectedError,
)
from holdfast.runtime.workplace import Workplace

_log = logging.getLogger("holdfast.worker")
MAX_NOTE = 8_000
"""How much of a traceback is kept with a failed attempt."""

MAX_REASON = 200
"""How much of a reason is told to those who watch."""

RETRY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of one run of a handler."""

    task_id: str
    state: TaskState | None
    """Where the task is now; ``None`` when the lease was lost."""
    why: str = ""
    tenant: str = ""
    agent: str = ""
    attempt: int = 0
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """In a word or two: the state, or why there is none.

        >>> Ending("t1", TaskState.COMPLETED).outcome, Ending("t1", None, "lease lost").outcome
        ('completed', 'lease lost')
        """
        return str(self.state or self.why)


class Runner:
    """Runs handlers and reports to the ledger.

    ::

        ending = await Runner(state, handler, complete).run(claimed, held)
    """

    def __init__(
        self,
        place: Workplace,
        handler: Handler,
        complete: Callable[[Held], Awaitable[TaskState | None]],
    ) -> None:
        self._place = place
        self._handler = handler
        self._complete = complete

    async def run(self, claimed: ClaimedTask, held: Held) -> Ending:
        """Run the handler until it ends, is suspended or is stopped."""
        task = TaskContext(
            self._place, claimed.task, held, Journal([]), retention=self._handler.retention
        )
        try:
            reached, why = await self._work(task, claimed, held)
        except LeaseLostError:
            return Ending(claimed.task.id, None, "a write was refused: the lease is lost")
        if reached is not None and reached in TERMINAL:
            await task.cleanup.finish()
        return Ending(claimed.task.id, reached, why)

    async def _work(
        self, task: TaskContext, claimed: ClaimedTask, held: Held
    ) -> tuple[TaskState | None, str]:
        try:
            if claimed.task.fence > 1:
                # Only a task that was claimed before can have anything stored.
                task.resume(Journal(await self._place.tasks.steps(claimed.task.id)))
                await task.cleanup.resume()
            result = await self._handle(task, held)
        except Suspended as suspended:
            return suspended.state, ""
        except asyncio.CancelledError as error:
            return await self._stopped(held, claimed.task, error)
        except LeaseLostError:
            raise
        except TaskRejectedError as refusal:
            told = said(refusal.reason) if refusal.reason else None
            return await self._end(held, TaskState.REJECTED, message=told, note=refusal.reason)
        except TaskFailedError as failure:
            told = said(failure.reason) if failure.reason else None
            return await self._end(held, TaskState.FAILED, message=told, note=failure.reason)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt
            return await self._failed(held, claimed.task, error)
        if result is None:
            return await self._reported(lambda: self._complete(held)), ""
        return await self._end(held, TaskState.COMPLETED, message=said(result))

    async def _handle(self, task: TaskContext, held: Held) -> Any:
        work: asyncio.Future[Any] = asyncio.ensure_future(self._handler.function(task))
        held.begin(work)
        try:
            if self._handler.timeout_seconds is not None:
                done, _ = await asyncio.wait({work}, timeout=self._handler.timeout_seconds)
                if not done:
                    held.stop(Stop.TIMEOUT)
            return await work
        finally:
            work.cancel()

    async def _stopped(
        self, held: Held, record: TaskRecord, error: asyncio.CancelledError
    ) -> tuple[TaskState | None, str]:
        me = asyncio.current_task()
        if held.stopped is None and me is not None and me.cancelling():
            # Somebody cancelled the worker itself.
            raise error
        match held.stopped:
            case None:
                # Something inside of the handler was cancelled, and nobody meant the handler.
                return await self._failed(held, record, error)
            case Stop.CANCEL:
                return await self._end(held, TaskState.CANCELED, note="the worker stopped it")
            case Stop.DRAIN | Stop.ASIDE:
                draining = held.stopped is Stop.DRAIN
                note = "the worker is stopping" if draining else "another task is to run alone"
                handed = await self._reported(
                    lambda: self._place.tasks.release(held.lease, note=note)
                )
                return (handed.state if handed else None), "handed back"
            case Stop.TIMEOUT:
                limit = self._handler.timeout_seconds
                late = TimeoutError(f"the handler took longer than its {limit:g} seconds")
                return await self._failed(held, record, late)
            case Stop.LOST:
                return None, "stopped: the lease is lost"

    async def _failed(
        self, held: Held, record: TaskRecord, error: BaseException
    ) -> tuple[TaskState | None, str]:
        """A failed attempt: the ledger lets it wait, or ends it after the last."""
        text = "".join(traceback.format_exception(error))[-MAX_NOTE:]
        _log.warning("task %s: a failed attempt: %r", record.id, error, extra={"task": record.id})
        later = self._handler.backoff_after(record.attempts)
        reached, _ = await self._end(held, TaskState.SUBMITTED, note=text, run_after=later)
        return reached, f"{type(error).__name__}: {error}"[:MAX_REASON]

    async def _end(
        self, held: Held, to: TaskState, *, message: ChatMessage | None = None, **options: Any
    ) -> tuple[TaskState | None, str]:
        record = await self._reported(
            lambda: self._place.tasks.transition(held.lease, to, message=message, **options)
        )
        return (record.state if record else None), str(options.get("note", ""))[:MAX_REASON]

    async def _reported(self, report: Callable[[], Awaitable[Any]]) -> Any:
        """Report until the ledger answers or the lease is lost; a lost answer is no trouble.

        A report that arrived ends the lease, so that a second one finds it lost and nothing happens
        twice.
        """
        asked = False
        while True:
            try:
                return await report()
            except (LeaseLostError, IllegalTransitionError):
                if asked:
                    return None
                raise
            except EngineError as error:
                _log.warning("the ledger did not take a report, trying again: %s", error)
                asked = True
                await asyncio.sleep(RETRY_SECONDS)
            except HoldfastError:
                raise
