"""The tracer and the meter of one opened ``State``."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TypeAlias

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from holdfast.telemetry.options import Telemetry

Attributes: TypeAlias = dict[str, str | int]

SYSTEMS = {"postgres": "postgresql"}
"""``db.system.name`` where it is not the name of the engine."""

DURATION_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
"""Bounds of the buckets, as the semantic conventions have them."""

_FORMAT = TraceContextTextMapPropagator()
_HEADER = "traceparent"


class Instruments:
    """Makes spans and records durations.

    ::

        instruments = Instruments(Telemetry())
    """

    def __init__(self, options: Telemetry) -> None:
        self.show_tenant = options.show_tenant
        ours = version("holdfast")
        self.tracer = trace.get_tracer("holdfast", ours, options.tracer_provider)
        meter = metrics.get_meter("holdfast", ours, options.meter_provider)
        self.duration = meter.create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of calls to the stores",
            explicit_bucket_boundaries_advisory=DURATION_SECONDS,
        )

    def mark(self, name: str, parent: str, seconds: float, attributes: Attributes) -> None:
        """Add a span to the trace of a task that has ended by now; it began ``seconds`` ago."""
        now = time.time_ns()
        self.tracer.start_span(
            name,
            remote(parent),
            SpanKind.CLIENT,
            attributes,
            start_time=now - int(seconds * 1e9),
        ).end(now)


def current_traceparent() -> str:
    """Return the current span as W3C text of 55 characters; empty if there is none.

    >>> current_traceparent()
    ''
    """
    found = trace.get_current_span().get_span_context()
    if not found.is_valid:
        return ""
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"


def remote(traceparent: str) -> Context:
    """Return the context of a span in another process; without a span if the text is invalid.

    >>> trace.get_current_span(remote("no span")).get_span_context().is_valid
    False
    """
    return _FORMAT.extract({_HEADER: traceparent}, Context())


def failed(span: Span, error: str) -> None:
    """Mark a span as failed, with the class of the error only: its text may have private data."""
    span.set_attribute("error.type", error)
    span.set_status(trace.StatusCode.ERROR)
