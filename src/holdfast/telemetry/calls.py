"""One span and one duration for each call of a store, around the contract."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple

from opentelemetry import context, trace
from opentelemetry.trace import SpanKind

from holdfast.contracts.channel import Channel
from holdfast.spi.tasks.draft import Draft
from holdfast.telemetry.instruments import (
    SYSTEMS,
    Attributes,
    Instruments,
    current_traceparent,
    failed,
)
from holdfast.values.tasks.records import ClaimedTask, TaskRecord
from holdfast.values.tasks.trace import with_traceparent

QUIET = frozenset(
    {
        *("claim", "claim_cleanup", "claim_outbox", "complete_many", "heartbeat"),
        *("recover_expired", "resting_messages", "run_due"),
    }
)
"""Calls that workers make all the time: only their duration is recorded, without a span."""

_trips: ContextVar[list[int] | None] = ContextVar("holdfast_round_trips", default=None)
"""The round trips of the current call so far; ``None`` outside of a call."""


def count_round_trip() -> None:
    """Count a round trip to a server for the current call; engines call it."""
    found = _trips.get()
    if found is not None:
        found[0] += 1


AT_ONCE = frozenset({"tasks", "schedules"})
"""Stores whose span is made when a call begins: tasks that the call submits refer to it.

For other stores the span is made after the call, while the caller waits for something else, because
making a span may take longer than a small read from Postgres.
"""

WAITING = 100
"""Maximum number of ended calls of a store that wait for their span."""


class Ended(NamedTuple):
    """A call that has ended."""

    operation: str
    outer: context.Context
    """The context in which the call was made."""
    span: trace.Span | None
    """Its span, if it had to exist while the call ran."""
    start: int
    end: int
    """When the call ended, in nanoseconds since 1970."""
    trips: int
    error: str


class CallTracer:
    """Makes the spans of one store of one tenant."""

    def __init__(self, instruments: Instruments, store: str, engine: str, tenant: str) -> None:
        self._instruments = instruments
        self._store = store
        self._shared: Attributes = {
            "db.system.name": SYSTEMS.get(engine, engine),
            "db.collection.name": store,
        }
        self._metric: dict[tuple[str, str], Attributes] = {}
        self._names: dict[str, tuple[str, Attributes]] = {}
        self._waiting = 0
        self._at_once = store in AT_ONCE
        self._span = dict(self._shared)
        if instruments.show_tenant:
            self._span["db.namespace"] = tenant

    async def call(
        self, operation: str, method: Callable[..., Any], args: Any, options: Any
    ) -> Any:
        """Call a method in a span; no span of its own if it is part of another call."""
        if _trips.get() is not None:
            return await method(*args, **options)
        trips, error, span, attached = [0], "", None, None
        token, start, outer = _trips.set(trips), time.time_ns(), context.get_current()
        if self._at_once and operation not in QUIET:
            span = self._begun(operation, outer, start, {})
            attached = context.attach(trace.set_span_in_context(span))
        try:
            found = await method(*args, **options)
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            if attached is not None:
                context.detach(attached)
            _trips.reset(token)
            end = time.time_ns()
            self._end_soon(Ended(operation, outer, span, start, end, trips[0], error))
        if operation in _MARKED:
            self._mark(operation, _MARKED[operation](found), (end - start) / 1e9)
        return found

    def _begun(
        self, operation: str, outer: context.Context, start: int, known: Attributes
    ) -> trace.Span:
        if operation not in self._names:
            attributes = self._span | {"db.operation.name": operation}
            self._names[operation] = f"{operation} {self._store}", attributes
        name, attributes = self._names[operation]
        return self._instruments.tracer.start_span(
            name, outer, SpanKind.CLIENT, attributes | known, start_time=start
        )

    def _end_soon(self, ended: Ended) -> None:
        """Make and end the span of a call while its caller waits for something else.

        If ``WAITING`` calls are pending, the span is made at once.
        """
        if self._waiting < WAITING:
            self._waiting += 1
            asyncio.get_running_loop().call_soon(self._end_later, ended)
        else:
            self._end(ended)

    def _end_later(self, ended: Ended) -> None:
        self._waiting -= 1
        self._end(ended)

    def _end(self, ended: Ended) -> None:
        if ended.operation not in QUIET:
            trips: Attributes = {"holdfast.round_trips": ended.trips}
            span = ended.span
            if span is None:
                span = self._begun(ended.operation, ended.outer, ended.start, trips)
            else:
                span.set_attributes(trips)
            if ended.error:
                failed(span, ended.error)
            span.end(ended.end)
        metric = self._metric_of(ended.operation, ended.error)
        self._instruments.duration.record(max(0, ended.end - ended.start) / 1e9, metric)

    def _metric_of(self, operation: str, error: str) -> Attributes:
        key = (operation, error)
        if key not in self._metric:
            failure: Attributes = {"error.type": error} if error else {}
            self._metric[key] = self._shared | {"db.operation.name": operation} | failure
        return self._metric[key]

    def _mark(self, operation: str, tasks: Iterable[TaskRecord], seconds: float) -> None:
        """Add a span to the trace of each task: a worker claimed it, or its worker was lost."""
        for task in tasks:
            self._instruments.mark(
                f"{operation} {self._store}",
                task.traceparent,
                seconds,
                self._span
                | {"db.operation.name": operation, "holdfast.task.id": task.id}
                | {"holdfast.task.attempt": task.attempts, "holdfast.task.fence": task.fence}
                | ({"holdfast.worker": task.worker} if task.worker else {}),
            )


def _claimed(found: list[ClaimedTask]) -> Iterable[TaskRecord]:
    return (one.task for one in found)


def _recovered(found: list[TaskRecord]) -> Iterable[TaskRecord]:
    return found


_MARKED: dict[str, Callable[[Any], Iterable[TaskRecord]]] = {
    "claim": _claimed,
    "recover_expired": _recovered,
}


def traced(store: Any, tracer: CallTracer) -> Any:
    """Return the same store with a span for each call of a coroutine method."""
    kind: Any = type(store)
    view = object.__new__(_traced_class(kind))
    view.__dict__.update(store.__dict__)
    view.__dict__["_call_tracer"] = tracer
    return view


def traced_channels(
    channel: Callable[[str], Channel], tracer: CallTracer
) -> Callable[[str], Channel]:
    """Return a function that makes channels with a span for each call."""

    def made(name: str) -> Channel:
        found: Channel = traced(channel(name), tracer)
        return found

    return made


@functools.cache
def _traced_class(store: Any) -> Any:
    methods = {
        name: _in_span(name, method)
        for name, method in inspect.getmembers(store, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    named = {"__module__": store.__module__, "__doc__": store.__doc__}
    return type(store)(store.__name__, (store,), named | methods)


def _in_span(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def called(self: Any, *args: Any, **options: Any) -> Any:
        tracer: CallTracer = self.__dict__["_call_tracer"]
        return await tracer.call(name, method, (self, *args), options)

    return called


class TracedTasks:
    """A layer between the task ledger and its engine: a new task keeps the span that submits it.

    ::

        vars(ledger)["_storage"] = TracedTasks(vars(ledger)["_storage"])
    """

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    async def submit(self, draft: Draft) -> Any:
        """Store a task with the current span."""
        return await self._storage.submit(_with_span(draft))

    async def submit_many(self, drafts: list[Draft]) -> Any:
        """Store tasks with the current span."""
        return await self._storage.submit_many([_with_span(draft) for draft in drafts])

    async def submit_child(self, lease: Any, step: Any, draft: Draft) -> Any:
        """Store the child of a task with the current span."""
        return await self._storage.submit_child(lease, step, _with_span(draft))


def _with_span(draft: Draft) -> Draft:
    found = current_traceparent()
    if found:
        # Nobody else has the draft, and a copy of its many fields takes half as long as a span.
        object.__setattr__(draft, "metadata", with_traceparent(draft.metadata, found))
    return draft
