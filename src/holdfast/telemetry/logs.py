"""The ids of the current span in every log record."""

from __future__ import annotations

import logging

from opentelemetry import trace


class SpanIds(logging.Filter):
    """Adds ``trace_id`` and ``span_id`` to the records of code that runs in a span.

    ::

        handler.addFilter(SpanIds())
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the ids; let every record pass."""
        found = trace.get_current_span().get_span_context()
        if found.is_valid:
            record.trace_id = trace.format_trace_id(found.trace_id)
            record.span_id = trace.format_span_id(found.span_id)
        return True
