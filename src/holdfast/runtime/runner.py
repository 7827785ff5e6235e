"""Runs the handler of one claimed task and reports the outcome to the ledger."""

from __future__ import annotations

import asyncio
import logging
import sysconfig
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.runtime.content import to_message
from holdfast.runtime.context import TaskContext
from holdfast.runtime.handlers import Handler
from holdfast.runtime.journal import Journal
from holdfast.runtime.offload import offload, pin_results
from holdfast.runtime.outcome import (
    REPLIED,
    Reply,
    Suspended,
    TaskFailedError,
    TaskRejectedError,
    reason_text,
)
from holdfast.runtime.remember import Remembering
from holdfast.runtime.results import RETURNED, message_and_result
from holdfast.runtime.running_task import RunningTask, Stop
from holdfast.runtime.stores import TaskStores
from holdfast.values.content import ChatMessage
from holdfast.values.errors import (
    EngineError,
    IllegalTransitionError,
    LeaseLostError,
    TimedOutError,
    UnavailableError,
)
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import ClaimedTask, Completion, TaskRecord

_log = logging.getLogger("holdfast.worker")
MAX_NOTE = 8_000
"""Maximum characters of a traceback stored with a failed attempt."""

MAX_REASON = 200
"""Maximum characters of a reason in an ``Ending``, as logs and watchers get it."""

ITS_LIMIT = "its handler allows no more, see max_attempts"
RETRY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of one run of a handler."""

    task_id: str
    state: TaskState | None
    """The task's new state; ``None`` if the lease was lost."""
    why: str = ""
    tenant: str = ""
    agent: str = ""
    attempt: int = 0
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """The new state, or the reason why there is none.

        >>> Ending("t1", TaskState.COMPLETED).outcome, Ending("t1", None, "lease lost").outcome
        ('completed', 'lease lost')
        """
        return str(self.state or self.why)


def log_fields(tenant: str, task: TaskRecord) -> dict[str, object]:
    """Return the fields that every log record about a task has, for programs that read logs.

    ::

        _log.info("task %s: claimed", task.id, extra=log_fields("acme", task))
    """
    return {
        "task": task.id,
        "tenant": tenant,
        "agent": str(task.agent),
        "attempt": task.attempts,
    }


class Runner:
    """Runs handlers and reports to the ledger.

    ::

        ending = await Runner(state, handler, complete).run(claimed, held)
    """

    context_class: type[TaskContext] = TaskContext
    """The class of the object that a handler is called with."""

    def __init__(
        self,
        stores: TaskStores,
        handler: Handler,
        complete: Callable[[RunningTask, Completion], Awaitable[TaskState | None]],
        remembering: Remembering | None = None,
        resources: Any = None,
    ) -> None:
        self._stores = stores
        self._handler = handler
        self._complete = complete
        self._remembering = remembering
        self._resources = resources

    async def run(self, claimed: ClaimedTask, held: RunningTask) -> Ending:
        """Run the handler until it ends, is suspended or is stopped, and report the outcome."""
        task = self.context_class(
            self._stores,
            claimed.task,
            held,
            Journal([]),
            retention=self._handler.retention,
            memory=self._handler.memory,
            said=self._says(claimed.task),
            resources=self._resources,
        )
        try:
            reached, why = await self._work(task, claimed, held)
        except LeaseLostError:
            return Ending(claimed.task.id, None, "a write was refused: the lease is lost")
        if reached is not None and reached in TERMINAL:
            await task.cleanup.finish()
        return Ending(claimed.task.id, reached, why)

    def _says(self, task: TaskRecord) -> Callable[[ChatMessage], Awaitable[None]] | None:
        remembering = self._remembering
        if remembering is None:
            return None
        return lambda message: remembering.says(self._stores, task, message)

    async def _work(
        self, task: TaskContext, claimed: ClaimedTask, held: RunningTask
    ) -> tuple[TaskState | None, str]:
        try:
            return await self._attempt(task, claimed, held)
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt
            # An outcome that the ledger refuses, such as a result that is no message, is a failed
            # attempt too. Without a report the task would stay ``working`` until its lease expires.
            return await self._failed(held, claimed.task, error)

    async def _journal(self, task: TaskContext, record: TaskRecord) -> Journal:
        steps = await self._stores.tasks.steps(record.id)
        if record.retry_of:
            await pin_results(self._stores.blobs, steps, mark=task.cleanup.of_blob)
        return Journal(steps)

    async def _attempt(
        self, task: TaskContext, claimed: ClaimedTask, held: RunningTask
    ) -> tuple[TaskState | None, str]:
        try:
            if claimed.task.fence > 1 or claimed.task.retry_of:
                # Only a task that was claimed before, or took over steps, can have stored steps.
                task.resume(await self._journal(task, claimed.task))
            if claimed.task.attempts > self._handler.attempts_of(claimed.task):
                # The ledger knows only the task's own limit. The handler's limit was used up
                # before: by workers that died, or under code with a higher limit.
                spent = _spent(claimed.task.attempts - 1)
                return await self._end(held, TaskState.FAILED, note=f"{spent}: {ITS_LIMIT}")
            if self._remembering is not None:
                await self._remembering.begins(self._stores, claimed.task)
            result = await self._handle(task, held)
        except Suspended as suspended:
            return suspended.state, ""
        except asyncio.CancelledError as error:
            return await self._stopped(held, claimed.task, error)
        except TaskRejectedError as refusal:
            return await self._given_up(held, TaskState.REJECTED, refusal.reason)
        except TaskFailedError as failure:
            return await self._given_up(held, TaskState.FAILED, failure.reason)
        if isinstance(result, Reply):
            await self._check_reply(task, claimed)
            return await self._end(held, TaskState.COMPLETED, message=result.message, note=REPLIED)
        end = Completion(held.lease)
        if result is not None:
            message, value = message_and_result(result)
            stored = await offload(
                task.stores.blobs, value, field=RETURNED, mark=task.cleanup.of_result
            )
            end = Completion(held.lease, message, stored)
        return await self._reported(held, lambda: self._complete(held, end)), ""

    async def _check_reply(self, task: TaskContext, claimed: ClaimedTask) -> None:
        """Raise ``ConfigError`` for a reply if any run of the task did anything else."""
        shown = False
        if claimed.task.fence > 1:
            # The record of a claim has no artifacts.
            record = await self._stores.tasks.get(
                claimed.task.id, owner=ANY_OWNER, messages_limit=0
            )
            shown = record is not None and bool(record.artifacts)
        task.check_reply(shown=shown)

    async def _handle(self, task: TaskContext, held: RunningTask) -> Any:
        work: asyncio.Future[Any] = asyncio.ensure_future(self._contained(task))
        held.begin(work)
        try:
            if self._handler.timeout_seconds is not None:
                done, _ = await asyncio.wait({work}, timeout=self._handler.timeout_seconds)
                if not done:
                    held.stop(Stop.TIMEOUT)
            result = await work
            if not isinstance(result, Reply):
                task.check_end()
            return result
        finally:
            work.cancel()

    async def _contained(self, task: TaskContext) -> Any:
        """Run the handler; turn an exception that would end the process into a failed attempt.

        This must be caught inside the asyncio task: asyncio passes a ``SystemExit`` of a task on to
        the event loop, which would end the worker and every other handler in it.
        """
        passing = (Exception, asyncio.CancelledError, Suspended, KeyboardInterrupt, GeneratorExit)
        try:
            return await self._handler.function(task)
        except passing:
            raise
        except BaseException as error:
            raise RuntimeError(
                f"the handler raised {type(error).__name__}({reason_text(error)}), which would end "
                "the worker: to end the task, return or raise TaskFailedError"
            ) from error

    async def _stopped(
        self, held: RunningTask, record: TaskRecord, error: asyncio.CancelledError
    ) -> tuple[TaskState | None, str]:
        me = asyncio.current_task()
        if held.stopped is None and me is not None and me.cancelling():
            # The worker itself was cancelled.
            raise error
        match held.stopped:
            case None:
                # Something inside the handler was cancelled, not the handler.
                return await self._failed(held, record, error)
            case Stop.CANCEL:
                return await self._end(held, TaskState.CANCELED, note="the worker stopped it")
            case Stop.DRAIN | Stop.ISOLATION:
                draining = held.stopped is Stop.DRAIN
                note = "the worker is stopping" if draining else "another task is to run alone"
                handed = await self._reported(
                    held, lambda: self._stores.tasks.release(held.lease, note=note)
                )
                return (handed.state if handed else None), "handed back"
            case Stop.TIMEOUT:
                limit = self._handler.timeout_seconds
                late = TimeoutError(f"the handler took longer than its {limit:g} seconds")
                return await self._failed(held, record, late)
            case Stop.LOST:
                return None, "stopped: the lease is lost"

    async def _failed(
        self, held: RunningTask, record: TaskRecord, error: BaseException
    ) -> tuple[TaskState | None, str]:
        """Record a failed attempt: schedule the next one, or fail the task after the last."""
        text = reason_text("".join(traceback.format_exception(error)))[-MAX_NOTE:]
        why = f"{type(error).__name__}: {reason_text(error)}"
        _log.warning(
            "task %s: a failed attempt: %s%s",
            *(record.id, why, _place_of(error)),
            extra={"task": record.id},
        )
        spent = await self._spent_here(held, record)
        if spent:
            reached, _ = await self._end(held, TaskState.FAILED, note=f"{spent}: {text}")
        else:
            later = self._handler.backoff_after(record.attempts)
            reached, _ = await self._end(held, TaskState.SUBMITTED, note=text, run_after=later)
        return reached, why[:MAX_REASON]

    async def _spent_here(self, held: RunningTask, record: TaskRecord) -> str:
        """Return the note for a task at the handler's limit of attempts; ``""`` if below the limit.

        The ledger enforces only the task's own limit. The count is read from the ledger, because a
        step stored in this attempt has reset it.
        """
        limit = self._handler.attempts_of(record)
        if record.attempts < limit or limit == record.max_attempts:
            return ""
        now = await self._reported(
            held,
            lambda: self._stores.tasks.get(
                record.id, owner=ANY_OWNER, messages_limit=0, artifacts=False
            ),
        )
        return _spent(now.attempts) if now is not None and now.attempts >= limit else ""

    async def _given_up(
        self, held: RunningTask, to: TaskState, reason: object
    ) -> tuple[TaskState | None, str]:
        """End the task without a retry, with the handler's reason."""
        text = reason_text(reason)
        return await self._end(held, to, message=to_message(text) if text else None, note=text)

    async def _end(
        self,
        held: RunningTask,
        to: TaskState,
        *,
        message: ChatMessage | None = None,
        **options: Any,
    ) -> tuple[TaskState | None, str]:
        record = await self._reported(
            held, lambda: self._stores.tasks.transition(held.lease, to, message=message, **options)
        )
        return (record.state if record else None), str(options.get("note", ""))[:MAX_REASON]

    async def _reported(self, held: RunningTask, report: Callable[[], Awaitable[Any]]) -> Any:
        """Retry a report until the ledger responds or the lease is lost.

        A lost response is safe: a report that arrived ends the lease, so the retry finds the lease
        lost and has no further effect. A report that fails for a whole ``lease_seconds`` is given
        up and its error raised. During an outage of the ledger, when heartbeats fail too, retries
        go on without this limit, until a worker that has claimed the task meanwhile makes the lease
        lost.
        """
        # The handler has ended, and its timeout no longer applies: extend the lease for the report.
        held.beats_until = None
        give_up_at: float | None = None
        while True:
            try:
                return await report()
            except (LeaseLostError, IllegalTransitionError):
                if give_up_at is not None:
                    return None
                raise
            except EngineError as error:
                now = time.monotonic()
                away = held.unsafe and isinstance(error, (UnavailableError, TimedOutError))
                if give_up_at is None or away:
                    give_up_at = now + held.lease_seconds
                if now >= give_up_at:
                    raise
                _log.warning("a report to the ledger failed, trying again: %s", error)
                await asyncio.sleep(RETRY_SECONDS)


def _spent(attempts: int) -> str:
    """Return the same note that the ledger writes at the task's own limit."""
    return f"gave up after {attempts} attempts without progress"


def _place_of(error: BaseException) -> str:
    """Return file, line and function of the last frame in the handler's own code.

    Frames of Holdfast, of installed packages and of the standard library are skipped.
    """
    others = (str(Path(__file__).parents[1]), "site-packages", sysconfig.get_path("stdlib"))
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not any(other in frame.filename for other in others)
    ]
    if not frames:
        return ""
    last = frames[-1]
    return f" ({Path(last.filename).name}:{last.lineno} in {last.name})"
