"""One span for each run of a handler and for each try of a step, in the trace of the task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind

from holdfast.runtime.context import TaskContext
from holdfast.runtime.outcome import Parked, Suspended
from holdfast.runtime.runner import Ending, Runner
from holdfast.runtime.running_task import RunningTask
from holdfast.telemetry.instruments import Attributes, Instruments, failed, remote
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import ClaimedTask

GIVEN_UP = frozenset({"failed", "rejected"})
"""Outcomes of a run that make its span an error."""


def traced_runner(instruments: Instruments) -> type[Runner]:
    """Return a ``Runner`` whose runs and steps are spans."""

    class TracedContext(TaskContext):
        """A task whose steps are spans."""

        async def _tried(
            self, key: StepKey, call: Callable[[], Awaitable[Any]], how: Any
        ) -> tuple[Any, float]:
            attributes: Attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": key.name,
                "holdfast.task.id": self.id,
                "holdfast.step": str(key),
            }
            name = f"execute_tool {key.name}"
            with instruments.tracer.start_as_current_span(
                name, attributes=attributes, record_exception=False, set_status_on_exception=False
            ) as span:
                try:
                    return await super()._tried(key, call, how)
                except (Suspended, Parked):
                    raise
                except BaseException as error:
                    failed(span, type(error).__name__)
                    raise

    class TracedRunner(Runner):
        """Runs handlers in spans."""

        context_class = TracedContext

        async def run(self, claimed: ClaimedTask, held: RunningTask) -> Ending:
            """Run the handler in a span, which is a child of the span that submitted the task."""
            span = _begun(instruments, claimed, held)
            # Never detached: the worker's own task ends next, and what it logs is of this trace.
            context.attach(trace.set_span_in_context(span))
            try:
                ending = await super().run(claimed, held)
            except BaseException as error:
                failed(span, type(error).__name__)
                raise
            else:
                outcome = str(ending.state or "lost")
                span.set_attribute("holdfast.task.outcome", outcome)
                if outcome in GIVEN_UP:
                    span.set_status(trace.StatusCode.ERROR)
                return ending
            finally:
                span.end()

    return TracedRunner


def _begun(instruments: Instruments, claimed: ClaimedTask, held: RunningTask) -> Span:
    task = claimed.task
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": str(task.agent),
        "gen_ai.conversation.id": task.session_id,
        "holdfast.task.id": task.id,
        "holdfast.task.attempt": task.attempts,
        "holdfast.task.fence": task.fence,
        "holdfast.worker": task.worker,
    }
    if task.parent_id:
        attributes["holdfast.task.parent_id"] = task.parent_id
    if instruments.show_tenant:
        attributes["db.namespace"] = held.tenant
    return instruments.tracer.start_span(
        f"invoke_agent {task.agent}",
        remote(task.traceparent),
        SpanKind.CONSUMER,
        attributes,
    )
