"""One span and one duration for each call of a store, around the contract."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

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
        *("claim", "claim_outbox", "complete_many", "due_cleanup", "expired", "heartbeat"),
        *("recover_expired", "run_due", "uncopied"),
    }
)
"""What workers call again and again: no span of its own, only its duration."""

_trips: ContextVar[list[int] | None] = ContextVar("holdfast_round_trips", default=None)
"""Round trips of the call that runs; ``None`` outside of a call."""


def count_round_trip() -> None:
    """Count a round trip to a server for the call that runs; an engine calls it."""
    found = _trips.get()
    if found is not None:
        found[0] += 1


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
        self._span = dict(self._shared)
        if instruments.show_tenant:
            self._span["db.namespace"] = tenant

    async def call(
        self, operation: str, method: Callable[..., Any], args: Any, options: Any
    ) -> Any:
        """Call a method in a span, unless it is part of another call."""
        if _trips.get() is not None:
            return await method(*args, **options)
        trips = [0]
        token, begun, error = _trips.set(trips), time.perf_counter(), ""
        span = self._begin(operation)
        attached = context.attach(trace.set_span_in_context(span))
        try:
            found = await method(*args, **options)
        except BaseException as raised:
            error = failed(span, raised)
            raise
        finally:
            context.detach(attached)
            span.set_attribute("holdfast.round_trips", trips[0])
            span.end()
            _trips.reset(token)
            took = time.perf_counter() - begun
            self._instruments.duration.record(took, self._metric_of(operation, error))
        if operation in _MARKED:
            self._mark(operation, _MARKED[operation](found), took)
        return found

    def _begin(self, operation: str) -> trace.Span:
        if operation in QUIET:
            return trace.INVALID_SPAN
        return self._instruments.tracer.start_span(
            f"{operation} {self._store}",
            kind=SpanKind.CLIENT,
            attributes=self._span | {"db.operation.name": operation},
        )

    def _metric_of(self, operation: str, error: str) -> Attributes:
        key = (operation, error)
        if key not in self._metric:
            failure: Attributes = {"error.type": error} if error else {}
            self._metric[key] = self._shared | {"db.operation.name": operation} | failure
        return self._metric[key]

    def _mark(self, operation: str, tasks: Iterable[TaskRecord], seconds: float) -> None:
        """Show in the trace of each task that a worker took it, or that its worker was lost."""
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
    if not found:
        return draft
    return dataclasses.replace(draft, metadata=with_traceparent(draft.metadata, found))
