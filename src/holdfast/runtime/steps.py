"""Durable steps of a handler: run once, stored, retried inside an attempt, several at a time."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple, NoReturn, TypeAlias

from holdfast.runtime.cleanup import Cleanup
from holdfast.runtime.journal import Journal, arguments_digest, check_digest
from holdfast.runtime.offload import load, offload
from holdfast.runtime.outcome import (
    Parked,
    Suspended,
    TaskFailedError,
    TaskRejectedError,
    reason_text,
)
from holdfast.runtime.running_task import RunningTask
from holdfast.runtime.stores import TaskStores
from holdfast.runtime.task_facts import TaskFacts
from holdfast.values.checks import check_count, check_seconds
from holdfast.values.errors import ConfigError, InvalidInputError, LeaseLostError
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import TRY, StepKey, StepRecord
from holdfast.values.tasks.records import TaskRecord

MAX_BACKOFF_SECONDS = 60.0
"""The longest wait between two tries of a step."""

WAITS_FOR = "waits for"
"""The beginning of the note of a task that waits for its children."""

MAX_ERROR = 2_000
"""Maximum characters of an error stored with a failed try."""

current_step: ContextVar[StepKey | None] = ContextVar("holdfast_step", default=None)
"""The step that runs; ``None`` outside a step."""

_branch: ContextVar[str] = ContextVar("holdfast_branch", default="")
"""The position of the running argument of ``gather``, such as ``1.2``; else empty."""

_TURNS = 10
"""How often other coroutines may run before this run is checked against the stored steps."""

_Failure: TypeAlias = tuple[StepKey, int, Exception, float | None, float]

_FINAL = (LeaseLostError, TaskFailedError, TaskRejectedError)
"""Errors after which a step is not tried again."""


class _Tries(NamedTuple):
    """How often a step is tried, and for how long."""

    retries: int
    backoff_seconds: float
    timeout_seconds: float | None

    def pause_after(self, attempt: int) -> float | None:
        """Return the wait before the next try; ``None`` after the last one."""
        doubled = self.backoff_seconds * 2.0 ** min(attempt - 1, 30)
        return None if attempt > self.retries else min(doubled, MAX_BACKOFF_SECONDS)


class TaskSteps(TaskFacts):
    """The methods of ``TaskContext`` for durable steps.

    ::

        pages = await task.step("fetch", fetch, task.message.text)
    """

    cleanup: Cleanup
    _owned: TaskStores

    def __init__(
        self, stores: TaskStores, record: TaskRecord, held: RunningTask, journal: Journal
    ) -> None:
        super().__init__(stores, record, held)
        self._journal = journal
        self._failure: _Failure | None = None

    def resume(self, journal: Journal) -> None:
        """Use the steps that earlier runs stored; the worker calls it before the handler."""
        self._journal = journal

    def check_end(self) -> None:
        """Raise ``ConflictError`` if the run ended without repeating all stored steps.

        ::

            task.check_end()
        """
        self._journal.check(ended=True)

    @property
    def idempotency_key(self) -> str:
        """An idempotency key to send to an external service, so that it acts once for this step.

        ::

            async def pay(amount: int) -> str:
                return await bank.pay(amount, key=task.idempotency_key)


            receipt = await task.step("pay", pay, 100)
        """
        key = current_step.get()
        if key is None:
            raise ConfigError("task.idempotency_key exists only inside a step: use task.step()")
        return f"{self.id}:{key}"

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retries: int = 0,
        backoff_seconds: float = 1.0,
        timeout_seconds: float | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run ``function(*args, **kwargs)`` and store its result; later runs return the stored one.

        A coroutine function is awaited; a plain function runs in a thread. Its result must be
        JSON; a large result is stored as a blob. If a later run calls the same step with other
        arguments, ``ConflictError`` is raised.

        If it raises, it is called again up to ``retries`` times in this attempt, after
        ``backoff_seconds``, doubled each time up to a minute; each failed try is in the timeline.
        A try that takes longer than ``timeout_seconds`` fails with ``TimeoutError``; a thread
        cannot be stopped, and its result is then ignored. Every other keyword, also a misspelt one
        such as ``retry=3``, is an argument of the function. To pass arguments of these names to
        the function, use ``functools.partial``. ::

            pages = await task.step("fetch", fetch, "https://example.org", retries=3)
        """
        if not callable(function):
            raise _not_a_function(name, function)
        check_count("retries", retries)
        check_seconds("backoff_seconds", backoff_seconds)
        if timeout_seconds is not None:
            check_seconds("timeout_seconds", timeout_seconds)
        key = await self._next("step", name)
        digest = arguments_digest(args, kwargs)
        ledger, blobs = self._stores.tasks, self._owned.blobs
        if stored := self._journal.find(key):
            check_digest(stored, digest)
            if stored.chunks and stored.fence != self._held.lease.fence:
                await ledger.restore_artifacts(self._held.lease, key)
            return await load(blobs, stored.result)
        how = _Tries(retries, backoff_seconds, timeout_seconds)
        result, seconds = await self._tried(key, lambda: _call(function, args, kwargs), how)
        packed = await offload(blobs, result, field=f"result of {key}", mark=self.cleanup.of_blob)
        kept = await ledger.record_step(
            self._held.lease, key, packed, digest=digest, seconds=seconds
        )
        self._journal.keep(kept)
        return await load(blobs, kept.result)

    async def _tried(
        self, key: StepKey, call: Callable[[], Awaitable[Any]], how: _Tries
    ) -> tuple[Any, float]:
        """Call a step's function until it returns. Returns its result, and how long it took."""
        attempt = 0
        while True:
            attempt, begun, token = attempt + 1, time.monotonic(), current_step.set(key)
            try:
                async with asyncio.timeout(how.timeout_seconds):
                    return await call(), _seconds_since(begun)
            except _FINAL:
                raise
            except Exception as error:
                pause = how.pause_after(attempt)
                if how.retries:
                    await self._failed_try(key, attempt, error, pause, begun)
                else:
                    self._failure = (key, attempt, error, None, begun)
                if pause is None:
                    raise
            finally:
                current_step.reset(token)
            await asyncio.sleep(pause)

    async def _report_failure(self) -> None:
        """Store the failure of the last step: the handler has caught its error and goes on."""
        failure, self._failure = self._failure, None
        if failure is not None:
            await self._failed_try(*failure)

    async def _failed_try(
        self, key: StepKey, attempt: int, error: Exception, pause: float | None, begun: float
    ) -> None:
        """Store a failed try in the timeline."""
        await self._stores.tasks.record_step(
            self._held.lease,
            self._journal.next_key(TRY, key.name),
            {
                "step": str(key),
                "try": attempt,
                "error": f"{type(error).__name__}: {reason_text(error)}"[:MAX_ERROR],
                "retry_in_seconds": pause,
            },
            seconds=_seconds_since(begun),
        )

    async def gather(self, *calls: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run several steps or child tasks at once. Returns their results in the given order.

        Each argument is a call that is not awaited, of ``task.step``, ``task.call``,
        ``task.spawn``, or of a coroutine function of yours that takes steps. The keys of its steps
        depend on its place among the arguments, not on which ends first, so that a later run finds
        them again. If some raise, the others still end, and the first error in the order of the
        arguments is raised. ``ask``, ``sleep`` and ``receive`` cannot be inside of it. ::

            first, second = await task.gather(
                task.step("fetch", fetch, "https://example.org/1"),
                task.step("fetch", fetch, "https://example.org/2"),
            )
        """
        _check_calls(calls)
        outer = _branch.get()
        number = self._journal.next_key("gather", outer or "gather").occurrence
        running = [
            _in_branch(call, f"{outer}{'/' if outer else ''}{number}.{at}")
            for at, call in enumerate(calls, 1)
        ]
        try:
            ended = await asyncio.gather(*running, return_exceptions=True)
        except BaseException:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            raise
        parked = _raise_first(ended)
        if parked:
            await self._park(parked)
        return list(ended)

    async def _park(self, children: list[str]) -> NoReturn:
        """Suspend the task until these children have ended; inside ``gather``, raise ``Parked``."""
        if _branch.get():
            raise Parked(children)
        count = len(set(children))
        await self._suspend(
            TaskState.SUBMITTED,
            progress=True,
            children=children,
            note=f"{WAITS_FOR} {count} {'task' if count == 1 else 'tasks'}",
        )

    async def _keep(self, key: StepKey, result: Any) -> StepRecord:
        """Store the result of a step unless an earlier run did. Returns the stored step."""
        stored = self._journal.find(key)
        if stored is None:
            stored = await self._stores.tasks.record_step(self._held.lease, key, result)
            self._journal.keep(stored)
        return stored

    async def _next(self, kind: str, name: str, *, branches: bool = True) -> StepKey:
        """Return the key of the next step of this kind and name.

        With ``branches`` false, it raises inside ``gather``.
        """
        what = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        if current_step.get() is not None:
            raise InvalidInputError(
                name, f"{what} cannot be inside a step: call it before or after the step"
            )
        branch = _branch.get()
        if branch and not branches:
            raise InvalidInputError(
                name, f"{what} cannot be inside task.gather(): call it before or after"
            )
        await self._pause_if_asked()
        await self._report_failure()
        key = self._journal.next_key(kind, f"{name}@{branch}" if branch else name)
        if not branch and self._journal.is_ahead(key):
            # Steps that run side by side without gather take their stored ones first.
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            self._journal.check()
        return key

    async def _pause_if_asked(self) -> None:
        if self._held.lease.pause_requested and not _branch.get():
            await self._suspend(TaskState.PAUSED)

    async def _suspend(self, to: TaskState, **options: Any) -> NoReturn:
        with self._held.leaving():
            gone = await self._stores.tasks.transition(self._held.lease, to, **options)
        raise Suspended(gone.state)


def _check_calls(calls: tuple[Any, ...]) -> None:
    """Raise ``InvalidInputError`` unless ``gather`` may run these calls here."""
    if current_step.get() is not None:
        _close(calls)
        raise InvalidInputError("gather", "cannot be inside a step: call it before or after")
    for at, call in enumerate(calls):
        if not inspect.iscoroutine(call):
            _close(calls)
            raise InvalidInputError(
                f"calls[{at}]",
                f"must be a call without await, as in task.gather(task.step(...)), not "
                f"{type(call).__name__}",
            )


def _raise_first(ended: Sequence[Any]) -> list[str]:
    """Raise the error that ends ``gather``, or return the children that its arguments wait for."""
    errors = [one for one in ended if isinstance(one, BaseException)]
    for error in errors:
        # A lost lease or a suspension ends the run, whatever the others raised.
        if isinstance(error, (LeaseLostError, Suspended)):
            raise error
    for error in errors:
        if not isinstance(error, Parked):
            raise error
    return [one for error in errors if isinstance(error, Parked) for one in error.children]


def _in_branch(call: Coroutine[Any, Any, Any], branch: str) -> asyncio.Task[Any]:
    context = copy_context()
    context.run(_branch.set, branch)
    return asyncio.create_task(_contained(call), context=context)


async def _contained(call: Coroutine[Any, Any, Any]) -> Any:
    """Await a call, and return a suspension as its result: asyncio would raise it in the loop."""
    try:
        return await call
    except (Suspended, Parked) as ending:
        return ending


def _close(calls: tuple[Any, ...]) -> None:
    """Close coroutines that will never run; Python would warn that they were never awaited."""
    for call in calls:
        if inspect.iscoroutine(call):
            call.close()


def _seconds_since(begun: float) -> float:
    return max(time.monotonic() - begun, 1e-6)


def _not_a_function(name: str, given: object) -> InvalidInputError:
    """Return the error for a step that was given a result or a coroutine, not a function."""
    if inspect.iscoroutine(given):
        # It will never run; without close() Python would warn that it was never awaited.
        given.close()
        return InvalidInputError(
            "function", f'must be f, not its coroutine f(): task.step("{name}", f, …)'
        )
    kind = type(given).__name__
    return InvalidInputError(
        "function", f"must be a function that the step {name!r} calls, not {kind}"
    )


async def _call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await asyncio.to_thread(function, *args, **kwargs)
    # A lambda that calls a coroutine function is a plain function that returns a coroutine.
    return await result if inspect.isawaitable(result) else result
